/* Which forms of instructions the engine runs; each that it does not is refused, and says why. */
#include "softgpu/binary/read.h"
#include "softgpu/engine/engine.h"

#include "test.h"

#include "form_text.h"

/* What is said about an instruction that does not run; "" of one that does, and has code. Its
 * opcode too. */
static unsigned asked(const char *instruction, char *why, size_t size) {
    static const struct sg_image_options options = {
        .architecture = 90, .suffix = 'a', .newest_ptx = SG_PTX_NEWEST, .relocatable = true};
    char text[8192], error[600] = "";
    struct sg_image_log log = {.error = error, .error_size = sizeof error};
    struct sg_image *image = NULL;
    struct sg_program *program = NULL;
    why[0] = '\0';
    snprintf(text, sizeof text, "%s%s%s", FORM_BEFORE, instruction, FORM_BEHIND);
    if (sg_image_read(text, SIZE_MAX, &options, &log, &image) != CUDA_SUCCESS ||
        sg_program_make(image, "k", &log, &program) != CUDA_SUCCESS)
        fail_msg("%s: %s", instruction, error);
    assert_non_null(program);
    if (sg_engine_can(program, why, size)) {
        struct sg_code *code;
        assert_int_equal(sg_code_make(program, SG_LEVEL_GENERIC, 0, &code), CUDA_SUCCESS);
        sg_code_free(code);
    } else {
        assert_true(why[0] != '\0');
    }
    unsigned op = program->instructions[0].op;
    sg_program_free(program);
    sg_image_free(image);
    return op;
}

/* The letter of FORM_BEFORE's registers for a type, 0 for another modifier. */
static char letter_of(const char *type) {
    unsigned bits = 0, count = 1;
    if (strncmp(type, "pred", 4) == 0)
        return 'p';
    if (sscanf(type, "e%*um%*ux%u", &count) == 1)
        return 'h';
    sscanf(type, "%*[bfsu]%ux%u", &bits, &count);
    switch (bits * count) {
    case 8:
    case 16:
        return 'h';
    case 32:
        return 'r';
    case 64:
        return 'd';
    case 128:
        return 'q';
    default:
        return 0;
    }
}

/* Writes letters of registers for $, # and *. */
static void name_registers(char *form) {
    char *operands = form + strcspn(form, " "), first = 0, last = 0, space = 'd';
    static const char *const narrow[] = {".shared", ".const", ".local"};
    for (char *at = strchr(form, '.'); at && at < operands; at = strchr(at + 1, '.')) {
        char letter = letter_of(at + 1);
        last = letter ? letter : last;
        first = first ? first : letter;
        for (size_t i = 0; i < sizeof narrow / sizeof narrow[0]; i++)
            if (strncmp(at, narrow[i], strlen(narrow[i])) == 0)
                space = 'r';
    }
    for (char *at = operands; *at; at++)
        *at = *at == '$' ? last : *at == '#' ? first : *at == '*' ? space : *at;
}

/* Calls for each form that a pattern stands for: the first <a/b> is replaced, then the others. */
static void each_form(const char *pattern, const char *why,
                      void (*call)(const char *form, const char *why)) {
    const char *open = strchr(pattern, '<'), *close = open ? strchr(open, '>') : NULL;
    if (!open) {
        char form[400];
        snprintf(form, sizeof form, "%s", pattern);
        name_registers(form);
        call(form, why);
        return;
    }
    assert_non_null(close);
    for (const char *at = open + 1; at <= close;) {
        char form[400];
        size_t length = strcspn(at, "/>");
        snprintf(form, sizeof form, "%.*s%.*s%s", (int)(open - pattern), pattern, (int)length, at,
                 close + 1);
        each_form(form, why, call);
        at += length + 1;
    }
}

static unsigned long forms;

static void runs(const char *form, const char *unused) {
    char why[300];
    forms++;
    asked(form, why, sizeof why);
    if (why[0])
        fail_msg("%s: %s", form, why);
}

static void is_refused(const char *form, const char *wanted) {
    char why[300];
    asked(form, why, sizeof why);
    if (!why[0])
        fail_msg("%s runs: it is in a list of those that do not", form);
    if (!strstr(why, wanted))
        fail_msg("%s: %s, not %s", form, why, wanted);
}

static const struct {
    const char *pattern, *why; /* NULL: it runs */
} patterns[] = {
#define FORM(pattern)              {pattern, NULL},
#define REFUSED_FORM(pattern, why) {pattern, why},
#include "engine_async_forms.def"
#include "engine_forms.def"
#include "engine_memory_forms.def"
#undef FORM
#undef REFUSED_FORM
};

TEST(each_listed_form_runs_or_is_refused_with_its_reason) {
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        each_form(patterns[i].pattern, patterns[i].why, patterns[i].why ? is_refused : runs);
    assert_true(forms > 8500); /* a list that was cut off says nothing */
}

static const struct {
    const char *text;
} decoded[] = {
#define FORM(text, dump) {text},
#include "program_forms.def"
#undef FORM
};

/* What is decoded and not run. */
static const struct {
    const char *text, *why;
} refused[] = {
#define REFUSED(text, why) {text, why},
#include "engine_refused.def"
#undef REFUSED
};

static const char *refusal_of(const char *text) {
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (strcmp(refused[i].text, text) == 0)
            return refused[i].why;
    return NULL;
}

/* Of every row of the table of opcodes: what runs, or the list that says why not. */
TEST(every_opcode_runs_or_is_listed_as_refused) {
    unsigned seen[SG_OP_COUNT] = {0};
    char why[300];
    for (size_t i = 0; i < sizeof decoded / sizeof decoded[0]; i++) {
        const char *wanted = refusal_of(decoded[i].text);
        seen[asked(decoded[i].text, why, sizeof why)]++;
        if (why[0] && (!wanted || !strstr(why, wanted)))
            fail_msg("%s: %s, but its row in the list of refusals is %s", decoded[i].text, why,
                     wanted ? wanted : "missing");
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        unsigned op = asked(refused[i].text, why, sizeof why);
        seen[op]++;
        if (!strstr(why, refused[i].why))
            fail_msg("%s: \"%s\", but the list of refusals says %s", refused[i].text, why,
                     refused[i].why);
    }
    for (unsigned op = 0; op < SG_OP_COUNT; op++)
        if (!seen[op])
            fail_msg("%s is in neither list", sg_op_name(op));
}
