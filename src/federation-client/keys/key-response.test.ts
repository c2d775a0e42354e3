import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { newSigningKey } from '../../../test/support/inputs/signing-key.ts';
import { type JsonObject, type JsonValue, parseJsonObject, signJson } from '../../protocol/index.ts';
import { readKeyResponse } from './key-response.ts';

const now = 1_700_000_000_000;
const week = 7 * 24 * 60 * 60 * 1000;
const key = newSigningKey('one');
const other = newSigningKey('two');
const content = {
  server_name: 'a.example',
  verify_keys: { 'ed25519:one': { key: key.publicKey.base64 } },
  old_verify_keys: { 'ed25519:old': { key: other.publicKey.base64, expired_ts: 5 } },
  valid_until_ts: now + 1_000,
};
const signed = (changes: JsonObject = {}, by = key) => signJson({ ...content, ...changes }, 'a.example', by);

describe('readKeyResponse', () => {
  it('returns current and old keys with their times', () => {
    const { keys, serverName } = readKeyResponse(signed(), now, 'a.example')!;
    assert.equal(serverName, 'a.example');
    assert.deepEqual(
      [...keys].map(
        ([
          id,
          {
            key: { base64 },
            validUntilTs,
            expiredTs,
          },
        ]) => [id, base64, validUntilTs, expiredTs],
      ),
      [
        ['ed25519:old', other.publicKey.base64, now + 1_000, 5],
        ['ed25519:one', key.publicKey.base64, now + 1_000, undefined],
      ],
    );
  });

  it('limits the validity of keys to a week', () => {
    const { keys } = readKeyResponse(signed({ valid_until_ts: now * 2 }), now)!;
    assert.equal(keys.get('ed25519:one')?.validUntilTs, now + week);
  });

  it('keeps the written form of numbers, which the signature covers', () => {
    const text = JSON.stringify(signed(parseJsonObject('{"more": 1.0}', { numbers: 'as written' })));
    const response = readKeyResponse(parseJsonObject(text, { numbers: 'as written' }), now)!;
    assert.match(response.text, /"more":1\.0/);
  });

  it('skips invalid keys and unknown algorithms', () => {
    const verify_keys = {
      ...content.verify_keys,
      'ed25519:short': { key: 'AAAA' },
      'rsa:x': { key: key.publicKey.base64 },
      'ed25519:text': 'key',
      __proto__: { key: key.publicKey.base64 },
    };
    assert.deepEqual(
      [...readKeyResponse(signed({ verify_keys, old_verify_keys: [] }), now)!.keys.keys()],
      ['ed25519:one'],
    );
  });

  it('rejects responses that are invalid, wrongly signed or from another server', () => {
    const invalidResponses: (JsonObject | JsonValue)[] = [
      content,
      signed({}, other),
      { ...signed(), valid_until_ts: now + 2_000 },
      signJson(content, 'b.example', key),
      signed({ verify_keys: {} }),
      signed({ valid_until_ts: -1 }),
      signed({ valid_until_ts: 'soon' }),
      signed({ server_name: 'no server/name' }),
      signed({ server_name: 5 }),
      signed({
        old_verify_keys: Object.fromEntries(
          Array.from({ length: 300 }, (_, i) => [
            `ed25519:${i}`,
            { key: other.publicKey.base64, expired_ts: 1 },
          ]),
        ),
      }),
      [],
      null,
    ];
    for (const json of invalidResponses)
      assert.equal(readKeyResponse(json, now), undefined, JSON.stringify(json).slice(0, 200));
    assert.equal(readKeyResponse(signed(), now, 'b.example'), undefined);
    assert.notEqual(readKeyResponse(signed(), now), undefined);
  });

  it('rejects arbitrary fields without throwing (property)', () => {
    const anything = fc.letrec<{ value: JsonValue }>((tie) => ({
      value: fc.oneof(
        fc.string(),
        fc.integer(),
        fc.constant(null),
        fc.array(tie('value')),
        fc.dictionary(fc.string(), tie('value')),
      ),
    })).value;
    const almost = fc.record({
      server_name: fc.constant('a.example'),
      verify_keys: anything,
      old_verify_keys: anything,
      valid_until_ts: fc.nat(),
      signatures: anything,
    });
    fc.assert(fc.property(almost, (json) => assert.equal(readKeyResponse(json, now), undefined)));
  });
});
