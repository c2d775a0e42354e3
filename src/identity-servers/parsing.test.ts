import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { codePoint } from '../../test/support/inputs/code-point.ts';
import { type JsonObject, MatrixError } from '../protocol/index.ts';
import { IdentityServers } from './identity-servers.ts';
import { readInviteKeys, readStoredInvite } from './stored-invite.ts';
import { readThirdPartyId } from './third-party-id.ts';

const names = ['token', 'display_name', 'public_keys', 'public_key', 'key_validity_url', 'mappings'];
const anyAnswer = fc.dictionary(fc.constantFrom(...names), fc.jsonValue({ maxDepth: 4 }));
const key = 'A'.repeat(43);

describe('responses of identity servers', () => {
  it('reads responses of identity servers without exceptions, whatever they contain (property)', () => {
    fc.assert(
      fc.property(anyAnswer, (answer) => {
        const stored = readStoredInvite(answer as JsonObject);
        assert.ok(stored === undefined || (stored.keys.length > 0 && stored.token !== ''));
        assert.ok(readInviteKeys(answer as JsonObject).length <= 16);
      }),
    );
  });

  it('reads each key of an identity server once, up to 16 keys', () => {
    const entry = { public_key: key, key_validity_url: 'https://id.example/' };
    const others = Array.from({ length: 40 }, (_, index) => ({
      public_key: `${String(index).padStart(2, '0')}${key.slice(2)}`,
    }));
    const keys = readInviteKeys({ ...entry, public_keys: [entry, 1, { public_key: 'short' }, ...others] });
    assert.equal(keys.length, 16);
    assert.deepEqual(keys[0], { publicKey: key, validityUrl: 'https://id.example/' });
    assert.deepEqual(keys[1], { publicKey: `00${key.slice(2)}`, validityUrl: undefined });
  });

  it('accepts a key of an identity server only after a response over HTTPS with the JSON value true', async () => {
    const requestedUrls: string[] = [];
    const servers = new IdentityServers({
      async fetch(url) {
        requestedUrls.push(url.href);
        const body = Buffer.from(url.pathname === '/yes' ? '{"valid":true}' : '{"valid":"true"}');
        return { status: 200, headers: {}, body, url };
      },
    });
    const isValid = (url: string) => servers.isKeyValid(url, '+/=');
    assert.deepEqual(
      await Promise.all(
        ['https://id.example/yes?a=b', 'https://id.example/no', 'http://x', 'x'].map(isValid),
      ),
      [true, false, false, false],
    );
    assert.deepEqual(requestedUrls, [
      'https://id.example/yes?a=b&public_key=%2B%2F%3D',
      'https://id.example/no?public_key=%2B%2F%3D',
    ]);
  });
});

describe('readThirdPartyId', () => {
  const read = (medium: string, address: string) =>
    readThirdPartyId({ medium, address, id_server: 'id.example', id_access_token: 'token' }).address;

  it('returns email addresses and phone numbers in canonical form', () => {
    assert.equal(read('email', ' Ann@Example.ORG '), 'ann@example.org');
    assert.equal(read('msisdn', '+44 (7700) 900-000'), '447700900000');
    assert.equal(read('org.example.pigeon', 'Coo'), 'Coo');
  });

  it('returns an address without spaces or throws M_INVALID_PARAM, whatever the input is (property)', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('email', 'msisdn', 'x', ''),
        fc.string({ unit: codePoint }),
        (medium, text) => {
          try {
            assert.doesNotMatch(read(medium, text), /\s/u);
          } catch (error) {
            assert.ok(error instanceof MatrixError && error.errcode === 'M_INVALID_PARAM');
          }
        },
      ),
    );
  });
});
