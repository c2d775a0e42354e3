import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { codePoint } from '../../test/support/inputs/code-point.ts';
import { MatrixError } from '../protocol/index.ts';
import { readThirdPartyId } from './third-party-id.ts';

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
