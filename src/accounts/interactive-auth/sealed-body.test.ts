import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { systemRandomness } from '../../kernel/randomness.ts';
import { canonicalJson, type JsonObject } from '../../protocol/index.ts';
import { digestBody, openBody, sealBody } from './sealed-body.ts';

describe('sealed request bodies', () => {
  it('opens a sealed body only with its session id, and only when it is unchanged', () => {
    const body = { password: 'secret', nested: { list: [1, 'a\0b', null] } };
    const sealed = sealBody(body, 'session', systemRandomness);
    assert.ok(!Buffer.from(sealed).includes('secret'));
    assert.deepEqual(openBody(sealed, 'session'), body);
    assert.throws(() => openBody(sealed, 'another'));
    const changed = Uint8Array.from(sealed);
    changed[changed.length - 1]! ^= 1;
    assert.throws(() => openBody(changed, 'session'));
  });

  it('keys the digest of a body by the session id, so that a password in the body cannot be guessed', () => {
    const body = { password: 'secret' };
    assert.notEqual(digestBody(body, 'session'), digestBody(body, 'another'));
    const unkeyed = hash('sha256', canonicalJson(body, 'as written'), 'base64url');
    assert.notEqual(digestBody(body, 'session'), unkeyed);
  });

  it('computes digests of bodies that depend on values but not on the order of fields', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 2 })), (object) => {
        const body = JSON.parse(JSON.stringify(object)) as JsonObject;
        const reversed = Object.fromEntries(Object.entries(body).reverse());
        assert.equal(digestBody(reversed, 'session'), digestBody(body, 'session'));
        const [one, two] = [1, 2].map((extra) => digestBody({ ...body, extra }, 'session'));
        assert.notEqual(one, two);
      }),
    );
  });
});
