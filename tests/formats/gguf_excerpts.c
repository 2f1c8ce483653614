/* Excerpts of known answers; and numbers in hexadecimal. */
#include "formats/gguf_excerpts.h"

#include <string.h>

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int read_bytes(const char *text, int most, uint8_t *bytes)
{
    int count = 0;
    for (; count < most && hex_digit(text[0]) >= 0 && hex_digit(text[1]) >= 0; text += 2)
        bytes[count++] = (uint8_t)(hex_digit(text[0]) << 4 | hex_digit(text[1]));
    return count;
}

int gguf_read_bytes(const char *text, uint8_t *bytes)
{
    return read_bytes(text, GGUF_BYTES_MAX, bytes);
}

int gguf_read_values(const char *text, float *values)
{
    uint8_t bytes[4 * GGUF_VALUES_MAX];
    int count = read_bytes(text, (int)sizeof bytes, bytes) / 4;
    for (int i = 0; i < count; i++) {
        const uint8_t *b = bytes + 4 * i;
        uint32_t bits = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
        memcpy(&values[i], &bits, sizeof bits);
    }
    return count;
}

/* clang-format off */
const gguf_decoded gguf_decoded_blocks[GGUF_DECODED] = {
    {"q4_0", QDNN_BLOCK_Q4_0,
     "41b98bc4514cd301e227c814c8b31b3a7385",
     {{0, 0xBFFC3000}, {1, 0x40282000}, {11, 0x40522800}, {15, 0x3FFC3000},
      {16, 0x80000000}, {22, 0xC07C3000}, {27, 0xBFFC3000}, {31, 0x80000000}}},
    {"q4_1", QDNN_BLOCK_Q4_1,
     "93ba4db599c2ac5b25c1604c6f92202b31dadd10",
     {{0, 0xC0F74600}, {1, 0xBFFCC800}, {11, 0xC115EF00}, {15, 0xBEA9A000},
      {16, 0xC0F74600}, {22, 0xC0A86200}, {27, 0xBFFCC800}, {31, 0xBF939800}}},
    {"q5_0", QDNN_BLOCK_Q5_0,
     "1018604c6f92202b31dadd10b5b83db20dba3537093b",
     {{0, 0xBD020000}, {1, 0xBC228000}, {11, 0x3CA28000}, {15, 0xBC228000},
      {16, 0x3B820000}, {22, 0x3CB2C000}, {27, 0xBC228000}, {31, 0x3BC30000}}},
    {"q5_1", QDNN_BLOCK_Q5_1,
     "c8bf3838fd4f8878ec8e76e7104c64ed542a260c0213dfc3",
     {{0, 0xC257C400}, {1, 0xC1D5A800}, {11, 0xC257C400}, {15, 0xC0A9E000},
      {16, 0xC1D5A800}, {22, 0xC1325000}, {27, 0xC1F4C800}, {31, 0xC1B68800}}},
    {"q8_0", QDNN_BLOCK_Q8_0,
     "8e21e6ae934f6c86775e92b7fdcada3e8eb3f664703a9de8456d252ed3ffdf0fb367",
     {{0, 0xBE906C00}, {1, 0xBF63BE00}, {11, 0xBF15FA00}, {15, 0xBF55DB00},
      {16, 0xBDDE3000}, {22, 0x3F3FA300}, {27, 0xBC31C000}, {31, 0x3F8F0880}}},
    {"q2_k", QDNN_BLOCK_Q2_K,
     "0e2f285d9c2761f0530b1659204c044df5a4165004cfa5d6022c5384d0f9370b34b5b8f3126386f3798172bbf384ad848a55"
     "ff9258da17dfca47bd565502b07d88a29e8f90d16f8690df22ce5aa198aaaf3422a8",
     {{0, 0x40832400}, {1, 0x00000000}, {86, 0x3D844000}, {127, 0x3EF7F800},
      {128, 0x3FF57A00}, {182, 0x41010A40}, {223, 0x40E4F200}, {255, 0x40F7AE00}}},
    {"q3_k", QDNN_BLOCK_Q3_K,
     "fabe16c78fbde2703a8e852db088d48c512af87322a5f07c806713f3db8e48d05351ef415d844ba37671bb2db817f8af5c1e"
     "38c6e0209609e77b31035cc498d02799534f6e0d06866190f19961efd7569f1fe2b27b91e72f0e2efdacde6bcc55a1a214d6"
     "f7b711e6dd5dd6a06c9a",
     {{0, 0xBD40A800}, {1, 0xBE107E00}, {86, 0x3E5D8E00}, {127, 0xBDA6F800},
      {128, 0x3D673000}, {182, 0xBD26F800}, {223, 0x3C807000}, {255, 0xBD33D000}}},
    {"q4_k", QDNN_BLOCK_Q4_K,
     "673265a812c6839cefad21a26988d61cfd0f27857bda4000cd92a2aee2f53052a4724ef1bcabdbd77c6c4133d64d965d7ea1"
     "e06a8d8ca5810e3d6c7c6f255b5a9ee8be663ea3a6d45909fb8804550a715ddffcb8d087d54dd56b2482f2e2b6a1dc3f7a6e"
     "af1367cf52d9ddd66e5a11a337651255363c406e1e7931277b2e60e1b80d19a0140636083b05158ba3682e07",
     {{0, 0x4241B918}, {1, 0x425E8898}, {86, 0x40977F40}, {127, 0x422186D0},
      {128, 0x41CA19A0}, {182, 0x42893220}, {223, 0x4256A9C8}, {255, 0x3F910500}}},
    {"q5_k", QDNN_BLOCK_Q5_K,
     "a7b63fa13bd7369e37b50e3445eb10329ebc806a31e6971a9f869b84892b5b14a3025aa49ccf5e78821f416ab5b02ef78f2c"
     "b21713513a7e440785f3556ed0d1b22a8bf9efc85795e14dd0f14c2b3d04394fca7dbb88a12093e603bc9c90e1b1e4e86b72"
     "bb0f84b07628b034573fbeb07f9a05e8ee5cce3dc91e647248cbdad43e1c832383c499e8c9af4bff852c8c86d16dbfb10365"
     "86ee708655a8743d52dc1c854bb0cb89fe967e59a7f917c1f15d",
     {{0, 0xC3B7B276}, {1, 0xC392E6BE}, {86, 0xC3E071E4}, {127, 0xC308ABFA},
      {128, 0xC280CEA4}, {182, 0xC35C4DA7}, {223, 0x3C27E000}, {255, 0xC3946A41}}},
    {"q6_k", QDNN_BLOCK_Q6_K,
     "0f96fd95b546b2d5d6a436095886d75be6bf4352da2f6398ecac882b7524e2f82e36be53d8e5990423e36679ea8cec0025c2"
     "f83b9c744f4aa6db9746942c033907a8e17c54e4973d8c29cae67cb764f5a4f839ac353a588b36050b7a8ea79dd4e683d9a8"
     "43cc57965ae282a4cd341a11116a2aa5f154a27735a605cf8c8dd4c49721af94d427f80e21a945bb15cbfe733ef903a796a9"
     "2c73f6b58117c84c6d4a8fbbbaca80d8312d01e39a1ed4caf07d1305c753c00ba41b5e04d6864d0f30c4248d6f3eef3e54b8"
     "8b10a29fc600b7a5e742",
     {{0, 0x4570B820}, {1, 0xC49B4D80}, {86, 0x44A07AC0}, {127, 0x4549E4C0},
      {128, 0xC6111C6A}, {182, 0x45927588}, {223, 0x80000000}, {255, 0xC6096658}}},
    {"iq4_nl", QDNN_BLOCK_IQ4_NL,
     "7a397447252877b3c92d5db9c8bcfee6660b",
     {{0, 0xC2062D00}, {1, 0xC0DB1000}, {11, 0x42112100}, {15, 0x41D01C00},
      {16, 0xC0DB1000}, {22, 0x42112100}, {27, 0x41D01C00}, {31, 0xC2ADE180}}},
    {"iq4_xs", QDNN_BLOCK_IQ4_XS,
     "043f6212924ea751fdb159727927e50c2c456dde4a00d825d415e7887fe91d0a7d7644ebaa10e29cb258752941b0f265a05f"
     "4e5847528ffa4347b5921a717dd45a765cb7be490c5a66f5c81d8cb738ac76209050897f10d804a0368db7cb3623298752a2"
     "b9e221c562fb90eaaf657b1947774737394f1667a3cac7313bcdc7ad4f557874fd9c7e33",
     {{0, 0x43720A00}, {1, 0xC3B66800}, {86, 0x452D6AE0}, {127, 0x44382900},
      {128, 0xC3870D00}, {182, 0x451CC160}, {223, 0x4410B280}, {255, 0x454061B0}}},
    {"tq1_0", QDNN_BLOCK_TQ1_0,
     "520d240e7a3f81c1aee3c7a8299a07a9439d4105f46f47ba5baa6ac5f19a6acbbb40adff366c95f6d81d09df3cb3d1446a21"
     "ff960ca3",
     {{0, 0x3C618000}, {1, 0x3C618000}, {86, 0x80000000}, {127, 0x80000000},
      {128, 0xBC618000}, {182, 0xBC618000}, {223, 0x3C618000}, {255, 0xBC618000}}},
    {"tq2_0", QDNN_BLOCK_TQ2_0,
     "84a8284ca28555ba7cab1356fa378f938f467ce05d8cb536086c5bc8f235fe5cc46a4b0849ca9b6b3527dd0ef674d6a48d75"
     "fdc3cf45bc466aa04acf8297472fd52e",
     {{0, 0xBDDAA000}, {1, 0xBDDAA000}, {86, 0x3E5AA000}, {127, 0x00000000},
      {128, 0xBDDAA000}, {182, 0x3E5AA000}, {223, 0x3DDAA000}, {255, 0xBDDAA000}}},
    {"mxfp4", QDNN_BLOCK_MXFP4,
     "7c2e501447ec349c3d9019cf3c2bbe7513",
     {{0, 0xBF000000}, {1, 0x00000000}, {11, 0xBE800000}, {15, 0x3E400000},
      {16, 0x3E000000}, {22, 0xBD800000}, {27, 0x3E400000}, {31, 0x3D800000}}},
    {"nvfp4", QDNN_BLOCK_NVFP4,
     "67651151f4e067062bf3f4277a3e22bfae0a13e3496f2e46d0a95ea1493eff814e1f7985",
     {{0, 0x42F00000}, {1, 0x00000000}, {22, 0x429C0000}, {31, 0xC3500000},
      {32, 0xBC900000}, {45, 0xBD100000}, {55, 0x41D80000}, {63, 0x00000000}}},
};

const gguf_encoded gguf_encoded_blocks[GGUF_ENCODED] = {
    {"q4_0", QDNN_BLOCK_Q4_0,
     "bfddd4473fa8a5e440161eb93fc8d1b13f8f56683e8265ab4033b622c067493340459917bdde4b20bf384ee7c00c3db1"
     "3f56aeb5bfa8d1b3c0043412be6bf600c01a953e3f414b73c0d7f621bf69cb943feed7cc3f9f2ade3fa3b06d402da9d9"
     "bf168a49bef8b2353f90a126bff13afb402d2cad3fb46ce83ff3d75dbeb482b5",
     "c03a569a0b7aa998abb47c789765b9a6a688"},
    {"q4_1", QDNN_BLOCK_Q4_1,
     "3ac38a283cadd8dcbd411dfc3c22375cbcd7b2c7bd19c5f83c40f08ebbbd91f63d22b88ebc4b59853d832a12bccc80be"
     "3be23ba3bcffabafbd45770a3d1074dcbc5c77023d1a64d53c1e407fbcfad3a83ca30e2e3c8651533841f8923ca9e39e"
     "bd4d779a3c5848f53cac75bf3cf13be4bcb7eda6b9879bbe3d83b323bd1b8565",
     "d01f6caa57c98038939278960c859fa34772f02b"},
    {"q5_0", QDNN_BLOCK_Q5_0,
     "3ac38a283cadd8dcbd411dfc3c22375cbcd7b2c7bd19c5f83c40f08ebbbd91f63d22b88ebc4b59853d832a12bccc80be"
     "3be23ba3bcffabafbd45770a3d1074dcbc5c77023d1a64d53c1e407fbcfad3a83ca30e2e3c8651533841f8923ca9e39e"
     "bd4d779a3c5848f53cac75bf3cf13be4bcb7eda6b9879bbe3d83b323bd1b8565",
     "1e9cb56a49b1307bec8eb7c90db1c6d3b0966e080c97"},
    {"q5_1", QDNN_BLOCK_Q5_1,
     "ba6df628ba8b1f59b96d95e5bb5cb94f3ad5a9a63a18b8543a87cbd7389d4ac13a6a2a1fbb0b405fb8e2ecf8bb3adab9"
     "bb396e353ae04bc2397867fd39f980e5baf3d5d6baaf8755b92b74ae3af4fa063ac06bd238b007a1ba827810b9e706e8"
     "3a58cca83ab0ba68ba8d8fddba367a9b3ab92f32b6302841b8b1ad193b1f08c9",
     "200ae69af4e5bcf38dbc11c0ab25d8026797c1e3a32b23f5"},
    {"q8_0", QDNN_BLOCK_Q8_0,
     "3946c5ca3ad488bd394d0d3fbb1b13043ab9dda039e594363988c854bb4d3794ba79f315bb8d3b3aba2675cfbb35103a"
     "3b172d7e3ac225653a5f8d4b3ade54f63aab9e6539e0518d3a2ec2ca3aba3fafbb07b7bfbb4dc45e3a4380a1bb1666a2"
     "baee5c2b3a070298bae924e5bad50254bb802086bb7c5ced3b4f0676b8c59187",
     "3902063006ba2a0d08a4e481edaf442c1932270d142ac3a316bcca0fccd08d8f5dfd"},
    {"mxfp4", QDNN_BLOCK_MXFP4,
     "420ded81c12907a5c2282176415470e1c2103faac2099567c207fd0bc1eefbcbc20f6b9bc13ba92d42433f19c2208024"
     "c1abd6d24216807141c2ce83c1e273abc22348684230d254400c48bb41589751c17c7c81c1ddcd3ac010934ec17c22d9"
     "c19da475428468e5c19086f9408e8353c2aaf1b5c1ec7b98c20e14edc129a096",
     "83d4590d22acbc0cacac69a51dfbc4c39c"},
};
/* clang-format on */
