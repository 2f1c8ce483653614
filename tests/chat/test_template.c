/* examples/chat: the forms of chat templates. */
#include "text.h"

#include "test.h"

#include <string.h>

/* The text of a turn; the words of its people stand between braces. */
static void print_turn(const chat_template *form, bool first, const char *system, text *out)
{
    turn t = template_turn(form, first, view_of(system), view_of("Hi"), view_of("</s>"));
    out->size = 0;
    for (size_t i = 0; i < t.count; i++) {
        text_print(out, t.segments[i].markup ? "%.*s" : "{%.*s}", (int)t.segments[i].text.size,
                   t.segments[i].text.data);
    }
}

static const struct {
    const char *name, *source, *first, *next;
} forms[] = {
    {"chatml", "{{'<|im_start|>' + role}}",
     "<|im_start|>system\n{Be brief.}<|im_end|>\n<|im_start|>user\n{Hi}<|im_end|>\n<|im_start|>assistant\n",
     "<|im_end|>\n<|im_start|>user\n{Hi}<|im_end|>\n<|im_start|>assistant\n"},
    {"phi-4", "<|im_start|> <|im_sep|>",
     "<|im_start|>system<|im_sep|>{Be "
     "brief.}<|im_end|><|im_start|>user<|im_sep|>{Hi}<|im_end|><|im_start|>assistant<|im_sep|>",
     "<|im_end|><|im_start|>user<|im_sep|>{Hi}<|im_end|><|im_start|>assistant<|im_sep|>"},
    {"llama-2", "[INST] <<SYS>>", "[INST] <<SYS>>\n{Be brief.}\n<</SYS>>\n\n{Hi} [/INST]",
     " </s><s>[INST] {Hi} [/INST]"},
    {"mistral-v1", "{{ '[INST] ' + m }}", "[INST] {Be brief.}\n\n{Hi} [/INST]", "</s>[INST] {Hi} [/INST]"},
    {"mistral-v3", "'[INST] ' [AVAILABLE_TOOLS]", "[INST] {Be brief.}\n\n{Hi}[/INST]",
     "</s>[INST] {Hi}[/INST]"},
    {"mistral-tekken", "\"[INST]\" [AVAILABLE_TOOLS]", "[INST]{Be brief.}\n\n{Hi}[/INST]",
     "</s>[INST]{Hi}[/INST]"},
    {"mistral-v7", "[INST] [SYSTEM_PROMPT]", "[SYSTEM_PROMPT]{Be brief.}[/SYSTEM_PROMPT][INST]{Hi}[/INST]",
     "</s>[INST]{Hi}[/INST]"},
    {"llama-3", "<|start_header_id|> <|end_header_id|>",
     "<|start_header_id|>system<|end_header_id|>\n\n{Be "
     "brief.}<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n{Hi}"
     "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
     "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n{Hi}<|eot_id|><|start_header_id|>assistant<|end_"
     "header_id|>\n\n"},
    {"gemma", "<start_of_turn>",
     "<start_of_turn>user\n{Be brief.}\n\n{Hi}<end_of_turn>\n<start_of_turn>model\n",
     "<end_of_turn>\n<start_of_turn>user\n{Hi}<end_of_turn>\n<start_of_turn>model\n"},
    {"phi-3", "<|user|> <|assistant|> <|end|>",
     "<|system|>\n{Be brief.}<|end|>\n<|user|>\n{Hi}<|end|>\n<|assistant|>\n",
     "<|end|>\n<|user|>\n{Hi}<|end|>\n<|assistant|>\n"},
    {"zephyr", "<|user|> <|assistant|>", "<|system|>\n{Be brief.}</s>\n<|user|>\n{Hi}</s>\n<|assistant|>\n",
     "</s>\n<|user|>\n{Hi}</s>\n<|assistant|>\n"},
    {"vicuna", "USER: ASSISTANT:", "{Be brief.}\n\nUSER: {Hi}\nASSISTANT:", "</s>\nUSER: {Hi}\nASSISTANT:"},
    {"alpaca", "### Instruction: ### Response:", "{Be brief.}\n\n### Instruction:\n{Hi}\n\n### Response:\n",
     "</s>\n\n### Instruction:\n{Hi}\n\n### Response:\n"},
};

TEST_ROWS(ChatTemplate, Forms, forms)
{
    text out = {0};
    const chat_template *form = template_find(view_of(forms[index].source));
    REQUIRE(form != NULL);
    CHECK_EQ_STR(template_name(form), forms[index].name);
    CHECK(template_find(view_of(forms[index].name)) == form);
    print_turn(form, true, "Be brief.", &out);
    CHECK_EQ_STR(out.data, forms[index].first);
    print_turn(form, false, "Be brief.", &out);
    CHECK_EQ_STR(out.data, forms[index].next);
    text_free(&out);
}

TEST_CASE(ChatTemplate, WithoutSystem)
{
    text out = {0};
    print_turn(template_find(view_of("gemma")), true, "", &out);
    CHECK_EQ_STR(out.data, "<start_of_turn>user\n{Hi}<end_of_turn>\n<start_of_turn>model\n");
    text_free(&out);
}

TEST_CASE(ChatTemplate, Unknown)
{
    CHECK(template_find(view_of("{{ messages }}")) == NULL);
    CHECK(template_find((view){0}) == NULL);
    CHECK(template_name_at(0) != NULL);
    CHECK(template_name_at(1000) == NULL);
}

/* The words that a template has for a conversation without a system, and none that are an expression. */
TEST_CASE(ChatTemplate, ItsOwnSystem)
{
    static const struct {
        const char *source, *words;
    } rows[] = {
        {"{{ '<|im_start|>system\nYou are kind.<|im_end|>\n' }}", "You are kind."},
        {"{{ '<|im_start|>system\\nYou are\\nkind.<|im_end|>\\n' }}", "You are\nkind."},
        {"{{ '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}", ""},
        {"{{ '<|im_start|>system\\n' + m + '<|im_end|>' }}{{ '<|im_start|>system\\nOwn.<|im_end|>' }}",
         "Own."},
        {"<|im_start|>", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        text out = {0};
        template_system(template_find(view_of("chatml")), view_of(rows[i].source), &out);
        CHECK_EQ_STR(out.data ? out.data : "", rows[i].words);
        text_free(&out);
    }
}
