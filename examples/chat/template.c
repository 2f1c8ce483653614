/* The common forms of chat templates. A file has its template as a program in a language of its own (Jinja); that is not
 * run: the marks in it tell which of the forms below it is. */
#include "text.h"

#include <stdlib.h>
#include <string.h>

/* A conversation: the system's words between theirs, then for each turn the user's between theirs and `answer`, which
 * the answer follows, and then `answer_after`. "{end}" stands for the token that ends a text. */
struct chat_template {
    const char *name;
    const char *marks[3]; /* all of which the program contains */
    const char *system, *system_after;
    bool system_in_turn; /* the system's words stand in the first turn of the user */
    const char *user, *user_after;
    const char *answer, *answer_after;
};

/* The first whose marks are there is taken. */
static const chat_template table[] = {
    {.name = "phi-4",
     .marks = {"<|im_start|>", "<|im_sep|>"},
     .system = "<|im_start|>system<|im_sep|>",
     .system_after = "<|im_end|>",
     .user = "<|im_start|>user<|im_sep|>",
     .user_after = "<|im_end|>",
     .answer = "<|im_start|>assistant<|im_sep|>",
     .answer_after = "<|im_end|>"},
    {.name = "chatml",
     .marks = {"<|im_start|>"},
     .system = "<|im_start|>system\n",
     .system_after = "<|im_end|>\n",
     .user = "<|im_start|>user\n",
     .user_after = "<|im_end|>\n",
     .answer = "<|im_start|>assistant\n",
     .answer_after = "<|im_end|>\n"},
    {.name = "mistral-v7",
     .marks = {"[INST]", "[SYSTEM_PROMPT]"},
     .system = "[SYSTEM_PROMPT]",
     .system_after = "[/SYSTEM_PROMPT]",
     .user = "[INST]",
     .user_after = "[/INST]",
     .answer_after = "{end}"},
    {.name = "mistral-tekken",
     .marks = {"\"[INST]\"", "[AVAILABLE_TOOLS]"},
     .system_in_turn = true,
     .system_after = "\n\n",
     .user = "[INST]",
     .user_after = "[/INST]",
     .answer_after = "{end}"},
    {.name = "mistral-v3",
     .marks = {"[INST]", "[AVAILABLE_TOOLS]"},
     .system_in_turn = true,
     .system_after = "\n\n",
     .user = "[INST] ",
     .user_after = "[/INST]",
     .answer_after = "{end}"},
    {.name = "llama-2",
     .marks = {"[INST]", "<<SYS>>"},
     .system_in_turn = true,
     .system = "<<SYS>>\n",
     .system_after = "\n<</SYS>>\n\n",
     .user = "[INST] ",
     .user_after = " [/INST]",
     .answer_after = " {end}<s>"},
    {.name = "mistral-v1",
     .marks = {"[INST]"},
     .system_in_turn = true,
     .system_after = "\n\n",
     .user = "[INST] ",
     .user_after = " [/INST]",
     .answer_after = "{end}"},
    {.name = "llama-3",
     .marks = {"<|start_header_id|>", "<|end_header_id|>"},
     .system = "<|start_header_id|>system<|end_header_id|>\n\n",
     .system_after = "<|eot_id|>",
     .user = "<|start_header_id|>user<|end_header_id|>\n\n",
     .user_after = "<|eot_id|>",
     .answer = "<|start_header_id|>assistant<|end_header_id|>\n\n",
     .answer_after = "<|eot_id|>"},
    {.name = "llama-4",
     .marks = {"<|header_start|>", "<|header_end|>"},
     .system = "<|header_start|>system<|header_end|>\n\n",
     .system_after = "<|eot|>",
     .user = "<|header_start|>user<|header_end|>\n\n",
     .user_after = "<|eot|>",
     .answer = "<|header_start|>assistant<|header_end|>\n\n",
     .answer_after = "<|eot|>"},
    {.name = "gemma",
     .marks = {"<start_of_turn>"},
     .system_in_turn = true,
     .system_after = "\n\n",
     .user = "<start_of_turn>user\n",
     .user_after = "<end_of_turn>\n",
     .answer = "<start_of_turn>model\n",
     .answer_after = "<end_of_turn>\n"},
    {.name = "phi-3",
     .marks = {"<|assistant|>", "<|end|>"},
     .system = "<|system|>\n",
     .system_after = "<|end|>\n",
     .user = "<|user|>\n",
     .user_after = "<|end|>\n",
     .answer = "<|assistant|>\n",
     .answer_after = "<|end|>\n"},
    {.name = "zephyr",
     .marks = {"<|user|>", "<|assistant|>"},
     .system = "<|system|>\n",
     .system_after = "{end}\n",
     .user = "<|user|>\n",
     .user_after = "{end}\n",
     .answer = "<|assistant|>\n",
     .answer_after = "{end}\n"},
    {.name = "granite",
     .marks = {"<|start_of_role|>"},
     .system = "<|start_of_role|>system<|end_of_role|>",
     .system_after = "<|end_of_text|>\n",
     .user = "<|start_of_role|>user<|end_of_role|>",
     .user_after = "<|end_of_text|>\n",
     .answer = "<|start_of_role|>assistant<|end_of_role|>",
     .answer_after = "<|end_of_text|>\n"},
    {.name = "command-r",
     .marks = {"<|START_OF_TURN_TOKEN|>"},
     .system = "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>",
     .system_after = "<|END_OF_TURN_TOKEN|>",
     .user = "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>",
     .user_after = "<|END_OF_TURN_TOKEN|>",
     .answer = "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
     .answer_after = "<|END_OF_TURN_TOKEN|>"},
    {.name = "deepseek-3",
     .marks = {"<\uff5cAssistant\uff5c>", "<\uff5cUser\uff5c>"},
     .user = "<\uff5cUser\uff5c>",
     .answer = "<\uff5cAssistant\uff5c>",
     .answer_after = "<\uff5cend\u2581of\u2581sentence\uff5c>"},
    {.name = "vicuna",
     .marks = {"USER: ", "ASSISTANT:"},
     .system_after = "\n\n",
     .user = "USER: ",
     .user_after = "\n",
     .answer = "ASSISTANT:",
     .answer_after = "{end}\n"},
    {.name = "alpaca",
     .marks = {"### Instruction:", "### Response:"},
     .system_after = "\n\n",
     .user = "### Instruction:\n",
     .user_after = "\n\n",
     .answer = "### Response:\n",
     .answer_after = "{end}\n\n"},
};

/* Where `part` begins in `v`; null: nowhere. */
static const char *find_in(view v, view part)
{
    for (size_t i = 0; part.size <= v.size && i <= v.size - part.size; i++)
        if (memcmp(v.data + i, part.data, part.size) == 0)
            return v.data + i;
    return NULL;
}

static bool has_marks(const chat_template *form, view source)
{
    size_t i = 0;
    while (i < 3 && form->marks[i] && find_in(source, view_of(form->marks[i])))
        i++;
    return i == 3 || !form->marks[i];
}

const chat_template *template_find(view source)
{
    const size_t count = sizeof table / sizeof table[0];
    for (size_t i = 0; i < count; i++)
        if (view_is(source, table[i].name))
            return &table[i];
    for (size_t i = 0; i < count; i++)
        if (source.data && has_marks(&table[i], source))
            return &table[i];
    return NULL;
}

const char *template_name(const chat_template *form)
{
    return form->name;
}

const char *template_name_at(int index)
{
    return (size_t)index < sizeof table / sizeof table[0] ? table[index].name : NULL;
}

/* ---- the system's words of a template ---- */

/* A quoted text of the program has ends of lines as \n. */
static void escape_lines(const char *plain, text *out)
{
    for (; *plain; plain++)
        text_add(out, *plain == '\n' ? "\\n" : plain, *plain == '\n' ? 2 : 1);
}

static void unescape_lines(const char *data, size_t size, text *out)
{
    for (size_t i = 0; i < size; i++) {
        bool line = data[i] == '\\' && i + 1 < size && data[i + 1] == 'n';
        text_add(out, line ? "\n" : data + i, 1);
        i += line;
    }
}

/* What stands between the two, where it is a plain text of the program and not one of its expressions. */
static void find_between(view source, view before, view after, text *out)
{
    const char *end = source.data + source.size;
    for (const char *at = source.data; (at = find_in((view){at, (size_t)(end - at)}, before)); at++) {
        const char *words = at + before.size, *stop = find_in((view){words, (size_t)(end - words)}, after);
        size_t size = stop ? (size_t)(stop - words) : 0;
        bool plain = size > 0 && out->size == 0;
        for (size_t i = 0; i < size; i++)
            plain = plain && !strchr("'\"{}", words[i]);
        if (plain)
            unescape_lines(words, size, out);
    }
}

void template_system(const chat_template *form, view source, text *out)
{
    text escaped = {0};
    if (!form->system || !form->system_after)
        return;
    view after = {form->system_after, strcspn(form->system_after, "\n{")};
    if (after.size == 0)
        return;
    find_between(source, view_of(form->system), after, out);
    escape_lines(form->system, &escaped);
    if (out->size == 0)
        find_between(source, (view){escaped.data, escaped.size}, after, out);
    text_free(&escaped);
}

/* ---- turns ---- */

static void add_segment(turn *t, view text, bool markup)
{
    if (text.size > 0)
        t->segments[t->count++] = (segment){text, markup};
}

static void add_markup(turn *t, const char *markup, view end)
{
    static const char place[] = "{end}";
    const char *at = markup ? strstr(markup, place) : NULL;
    if (!at) {
        add_segment(t, view_of(markup), true);
        return;
    }
    add_segment(t, (view){markup, (size_t)(at - markup)}, true);
    add_segment(t, end, true);
    add_segment(t, view_of(at + strlen(place)), true);
}

static void add_system(turn *t, const chat_template *form, view system, view end)
{
    if (system.size == 0)
        return;
    add_markup(t, form->system, end);
    add_segment(t, system, false);
    add_markup(t, form->system_after, end);
}

turn template_turn(const chat_template *form, bool first, view system, view user, view end)
{
    turn t = {0};
    add_markup(&t, first ? NULL : form->answer_after, end);
    if (first && !form->system_in_turn)
        add_system(&t, form, system, end);
    add_markup(&t, form->user, end);
    if (first && form->system_in_turn)
        add_system(&t, form, system, end);
    add_segment(&t, user, false);
    add_markup(&t, form->user_after, end);
    add_markup(&t, form->answer, end);
    return t;
}
