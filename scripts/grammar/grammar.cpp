#include "grammar.h"

#include <cmath>
#include <cstring>

#include "json-schema-to-grammar.h"
#include "llama-grammar.h"
#include "llama.h"
#include "nlohmann/json.hpp"

// What the library's own build would define.
int LLAMA_BUILD_NUMBER = 0;
char const *LLAMA_COMMIT = "", *LLAMA_COMPILER = "", *LLAMA_BUILD_TARGET = "";

struct session {
    ollama_vocab vocab;
    llama_grammar *grammar;
    size_t n;
};

int grammar_of(const char *schema, char *out, size_t room) {
    std::string text;
    int status = 0;
    try {
        text = json_schema_to_grammar(nlohmann::ordered_json::parse(schema), true);
    } catch (const std::exception &e) {
        text = e.what();
        status = -1;
    }
    if (text.size() >= room) {
        text = "the grammar is too long";
        status = -1;
    }
    memcpy(out, text.c_str(), text.size() + 1);
    return status < 0 ? status : (int)text.size();
}

void *grammar_begin(const char *grammar, const char **pieces, size_t n) {
    session *s = new session;
    s->n = n;
    std::vector<uint32_t> ids(n);
    for (size_t i = 0; i < n; i++) {
        ids[i] = (uint32_t)i;
    }
    uint32_t end = (uint32_t)n;
    const char *nothing = "";
    s->vocab.add_token_pieces(ids.data(), n, pieces);
    s->vocab.add_token_pieces(&end, 1, &nothing);
    s->vocab.set_eog_tokens(&end, 1);
    s->grammar = llama_grammar_init_impl(nullptr, &s->vocab, grammar, "root", false, nullptr, 0, nullptr, 0);
    if (s->grammar == nullptr) {
        delete s;
        return nullptr;
    }
    return s;
}

void grammar_end(void *g) {
    session *s = (session *)g;
    llama_grammar_free_impl(s->grammar);
    delete s;
}

void grammar_allows(void *g, uint8_t *allowed) {
    session *s = (session *)g;
    std::vector<llama_token_data> data(s->n + 1);
    for (size_t i = 0; i <= s->n; i++) {
        data[i] = {(llama_token)i, 1.0f, 0.0f};
    }
    llama_token_data_array all = {data.data(), data.size(), -1, false};
    llama_grammar_apply_impl(*s->grammar, &all);
    for (size_t i = 0; i <= s->n; i++) {
        allowed[i] = !std::isinf(data[i].logit);
    }
}

void grammar_take(void *g, uint32_t piece) {
    llama_grammar_accept_impl(*((session *)g)->grammar, (llama_token)piece);
}
