// Files that lack an end token or have metadata that is not supported, in Node.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { fresh } from '../support/install.mjs';
import { writeTinyModel } from '../support/tiny-model.mjs';

/** The bytes of a file with all occurrences of a text replaced by another one of the same length. */
function replaced(bytes, text, other) {
  const copy = Buffer.from(bytes);
  assert.equal(text.length, other.length);
  assert.notEqual(copy.indexOf(text), -1);
  for (let at = copy.indexOf(text); at >= 0; at = copy.indexOf(text)) {
    copy.write(other, at);
  }
  return copy;
}

/** The bytes of a file with another value of 32 bits for a key. */
function withValue(bytes, key, value) {
  const copy = Buffer.from(bytes);
  copy.writeUInt32LE(value, copy.indexOf(key) + key.length + 4);
  return copy;
}

/** The error of a call. */
const failure = (call) => call().then(() => 'none', (error) => `${error.code}: ${error.message}`);

describe('files of models', () => {
  let LanguageModel;
  let bytes;
  before(async () => {
    const folder = fresh('llm-files');
    writeTinyModel(folder);
    ({ LanguageModel } = await import(pathToFileURL(join(folder, 'node_modules/relampago/llm/node.js'))));
    bytes = readFileSync(join(folder, 'tiny.gguf'));
  });

  test('answers by a schema without a usable end token', async () => {
    const nameless = replaced(bytes, '<|im_end|>', '<|im_fin|>');
    const key = 'tokenizer.ggml.eos_token_id';
    const files = [
      replaced(nameless, key, 'tokenizer.ggml.EOS_token_id'),
      ...[260, 1 << 20, 0xffff_ffff].map((id) => withValue(nameless, key, id)),
      // The end of turns.
      replaced(withValue(nameless, key, 260), key, 'tokenizer.ggml.eot_token_id'),
    ];
    for (const file of files) {
      const model = await LanguageModel.load(file);
      const json_schema = { schema: { enum: [12] } };
      const options = { response_format: { type: 'json_schema', json_schema }, max_tokens: 20 };
      for (let i = 0; i < 2; i++) {
        const answer = model.complete('hello', options);
        assert.equal(await answer.text(), '12');
        assert.equal(answer.finish_reason, 'stop');
      }
      model.dispose();
    }
  });

  test('loads and inspections refuse the same files', async () => {
    const files = {
      'tokenizer.ggml.model': replaced(bytes, 'tokenizer.ggml.model', 'tokenizer.ggml.MODEL'),
      'tokenizer.ggml.merges': replaced(bytes, 'tokenizer.ggml.merges', 'tokenizer.ggml.MERGES'),
      'llama.embedding_length': replaced(bytes, 'llama.embedding_length', 'llama.EMBEDDING_LENGTH'),
      'llama.attention.head_countXkv': replaced(bytes, 'llama.attention.head_count_kv', 'llama.attention.head_countXkv'),
    };
    for (const [key, file] of Object.entries(files)) {
      const loaded = await failure(() => LanguageModel.load(file));
      assert.match(loaded, new RegExp(`^INVALID_MODEL: .*, but must be .*, at metadata \`${key}\`$`));
      assert.equal(await failure(() => LanguageModel.inspect(file)), loaded);
    }
  });
});
