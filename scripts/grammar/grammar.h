#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
// grammar_of writes the grammar of a JSON Schema to out and returns its length, or writes the
// error and returns -1.
int grammar_of(const char *schema, char *out, size_t room);
void *grammar_begin(const char *grammar, const char **pieces, size_t n);
void grammar_end(void *g);
// grammar_allows sets allowed[i] if piece i may be next; piece n is the end of the text.
void grammar_allows(void *g, uint8_t *allowed);
void grammar_take(void *g, uint32_t piece);
#ifdef __cplusplus
}
#endif
