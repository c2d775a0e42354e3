import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '../protocol/index.ts';
import { readInviteKeys, readStoredInvite } from './stored-invite.ts';

const names = ['token', 'display_name', 'public_keys', 'public_key', 'key_validity_url', 'mappings'];
const anyAnswer = fc.dictionary(fc.constantFrom(...names), fc.jsonValue({ maxDepth: 4 }));
const key = 'A'.repeat(43);

describe('stored invites and keys in responses of identity servers', () => {
  it('reads any JSON without exceptions (property)', () => {
    fc.assert(
      fc.property(anyAnswer, (answer) => {
        const stored = readStoredInvite(answer as JsonObject);
        assert.ok(stored === undefined || (stored.keys.length > 0 && stored.token !== ''));
        assert.ok(readInviteKeys(answer as JsonObject).length <= 16);
      }),
    );
  });

  it('returns each key once, up to 16 keys', () => {
    const entry = { public_key: key, key_validity_url: 'https://id.example/' };
    const others = Array.from({ length: 40 }, (_, index) => ({
      public_key: `${String(index).padStart(2, '0')}${key.slice(2)}`,
    }));
    const keys = readInviteKeys({ ...entry, public_keys: [entry, 1, { public_key: 'short' }, ...others] });
    assert.equal(keys.length, 16);
    assert.deepEqual(keys[0], { publicKey: key, validityUrl: 'https://id.example/' });
    assert.deepEqual(keys[1], { publicKey: `00${key.slice(2)}`, validityUrl: undefined });
  });
});
