import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { canonicalObject } from '../../../test/protocol/arbitrary.ts';
import { cpuTime } from '../../../test/support/clocks/cpu-time.ts';
import { newSigningKey } from '../../../test/support/inputs/signing-key.ts';
import { parseJsonObject } from '../json/index.ts';
import type { JsonObject } from '../json.ts';
import { isSignedWithAnyKey } from './any-key.ts';
import { decodeBase64 } from './base64.ts';
import { SigningKey, type VerifyKey } from './ed25519.ts';
import { signJson, verifyJson } from './signed-json.ts';

const key = SigningKey.fromSeed('1', decodeBase64('YJDBA9Xnr2sVqXD9Vj7XVUnmFZcZrlw8Md7kMW+3XA1')!)!;
const otherKey = newSigningKey('2');

/** Returns a function that finds the public key of one of these signing keys by its key id. */
function knownKeys(...keys: readonly SigningKey[]): (keyId: string) => VerifyKey | undefined {
  return (keyId) => keys.find((each) => each.keyId === keyId)?.publicKey;
}

suite('signJson: examples of the specification', () => {
  const examples: readonly (readonly [JsonObject, string])[] = [
    [{}, 'K8280/U9SSy9IVtjBuVeLr+HpOB4BQFWbg+UZaADMtTdGYI7Geitb76LTrr5QV/7Xg4ahLwYGYZzuHGZKM5ZAQ'],
    [
      { one: 1, two: 'Two' },
      'KqmLSbO39/Bzb0QIYE82zqLwsA+PDzYIpIRA2sRQ4sL53+sN6/fpNSoqE7BP7vBZhG6kYdD13EIMJpvhJI+6Bw',
    ],
  ];
  for (const [object, signature] of examples) {
    test(`signs ${JSON.stringify(object)}`, () => {
      const signed = signJson(object, 'domain', key);
      assert.deepEqual(signed, { ...object, signatures: { domain: { 'ed25519:1': signature } } });
      assert.ok(verifyJson(signed, 'domain', knownKeys(key)));
    });
  }
});

suite('signJson', () => {
  test('keeps other signatures and unsigned, and does not sign them', () => {
    const once = signJson({ a: 1, unsigned: { age: 5 } }, 'example.org', key);
    const twice = signJson(signJson(once, 'example.org', otherKey), 'elsewhere', key);
    assert.deepEqual(Object.keys(twice.signatures), ['example.org', 'elsewhere']);
    assert.deepEqual(twice.unsigned, { age: 5 });
    const changed = { ...twice, unsigned: { age: 6 } };
    for (const server of ['example.org', 'elsewhere']) {
      assert.ok(verifyJson(changed, server, knownKeys(key, otherKey)));
    }
  });

  test('replaces signatures that are not objects', () => {
    for (const signatures of [1, 'text', [], null, { 'example.org': 5 }]) {
      assert.ok(verifyJson(signJson({ signatures }, 'example.org', key), 'example.org', knownKeys(key)));
    }
  });

  test('signs numbers as they were written', () => {
    const object = parseJsonObject('{"a":1.0,"b":1e3}', { numbers: 'as written' });
    const signed = signJson(object, 'example.org', key);
    assert.ok(verifyJson(signed, 'example.org', knownKeys(key)));
    assert.ok(!verifyJson({ ...signed, a: 1 }, 'example.org', knownKeys(key)));
  });
});

suite('verifyJson', () => {
  const signed = signJson({ a: 1 }, 'example.org', key);
  const signature = signed.signatures['example.org']!['ed25519:1']!;

  test('requires a signature by a known key of the given entity', () => {
    assert.ok(!verifyJson(signed, 'elsewhere', knownKeys(key)));
    assert.ok(!verifyJson(signed, 'example.org', knownKeys()));
    assert.ok(!verifyJson(signed, '__proto__', knownKeys(key)));
    assert.ok(!verifyJson({ a: 1 }, 'example.org', knownKeys(key)));
  });

  test('requires all signatures by known keys to be correct, and ignores signatures by unknown keys', () => {
    const withMore = (more: Record<string, string>) => ({
      ...signed,
      signatures: { 'example.org': { 'ed25519:1': signature, ...more } },
    });
    assert.ok(verifyJson(withMore({ 'ed25519:2': signature }), 'example.org', knownKeys(key)));
    assert.ok(!verifyJson(withMore({ 'ed25519:2': signature }), 'example.org', knownKeys(key, otherKey)));
    assert.ok(verifyJson(withMore({ 'rsa:1': 'x' }), 'example.org', knownKeys(key)));
  });

  test('refuses malformed signatures without throwing', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (signatures) => {
        const object = { a: 1, signatures } as JsonObject;
        assert.equal(verifyJson(object, 'example.org', knownKeys(key)), false);
        assert.equal(isSignedWithAnyKey(object, [key.publicKey.base64]), false);
      }),
    );
    assert.equal(verifyJson({ ...signed, a: '\ud800' }, 'example.org', knownKeys(key)), false);
    assert.equal(isSignedWithAnyKey({ ...signed, a: '\ud800' }, [key.publicKey.base64]), false);
  });

  test('accepts the signed object and refuses objects with other fields', () => {
    fc.assert(
      fc.property(canonicalObject, canonicalObject, (object, different) => {
        const result = signJson(object, 'example.org', key);
        assert.ok(verifyJson(result, 'example.org', knownKeys(key)));
        const swapped = { ...different, signatures: result.signatures };
        const same = JSON.stringify(signJson(different, 'x', key).signatures['x']);
        assert.equal(
          verifyJson(swapped, 'example.org', knownKeys(key)),
          same === JSON.stringify(result.signatures['example.org']),
        );
      }),
      { numRuns: 200 },
    );
  });
});

suite('isSignedWithAnyKey', () => {
  const signed = signJson({ mxid: '@a:example.org', token: 'abc' }, 'identity.example.org', key);

  test('accepts an object when one of its signatures is by one of the keys', () => {
    const more = signJson(signed, 'elsewhere', otherKey);
    assert.ok(isSignedWithAnyKey(more, ['no key', otherKey.publicKey.base64]));
    assert.ok(isSignedWithAnyKey(more, [key.publicKey.base64]));
    assert.ok(!isSignedWithAnyKey(signed, [otherKey.publicKey.base64]));
    assert.ok(!isSignedWithAnyKey(signed, []));
    assert.ok(!isSignedWithAnyKey({ ...signed, token: 'abd' }, [key.publicKey.base64]));
  });

  test('takes bounded time for many keys and signatures', () => {
    const right = signed.signatures['identity.example.org']!['ed25519:1']!;
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`ed25519:${i}`, right]));
    const keys = Array.from({ length: 1000 }, () => otherKey.publicKey.base64);
    const took = cpuTime(() =>
      assert.equal(isSignedWithAnyKey({ ...signed, signatures: { x: many } }, keys), false),
    );
    assert.ok(took < 1000, `${took} ms`);
  });
});
