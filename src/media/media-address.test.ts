import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { codePoint } from '../../test/support/inputs/code-point.ts';
import { MatrixError } from '../protocol/index.ts';
import { contentTypeOf, unknownType } from './description.ts';
import { mediaAddress } from './media-address.ts';

describe('mediaAddress', () => {
  it('accepts media ids of letters, digits, - and _, and throws M_NOT_FOUND for other media ids and for invalid server names', () => {
    assert.deepEqual(mediaAddress('a.test:8448', 'a-B_9'), { serverName: 'a.test:8448', mediaId: 'a-B_9' });
    const bad = ['', '.', '..', '../x', 'a/b', 'a\\b', 'a.b', 'a b', 'a%2e', 'ä', 'a\0', 'x'.repeat(256)];
    for (const id of bad) assert.throws(() => mediaAddress('a.test', id), { errcode: 'M_NOT_FOUND' }, id);
    for (const name of ['', 'a/b', 'a.test/x', 'a_b', '@a', 'a.test\0']) {
      assert.throws(() => mediaAddress(name, 'x'), { errcode: 'M_NOT_FOUND' }, name);
    }
  });

  it('returns random addresses unchanged when they have only allowed characters, and throws M_NOT_FOUND for all others', () => {
    const parts = fc.constantFrom('/', '..', '.', 'a', '%2e', '\\', '\0', ':', '-', '_', 'é', 'test');
    const text = fc.oneof(
      fc.string({ unit: codePoint }),
      fc.array(parts).map((all) => all.join('')),
    );
    fc.assert(
      fc.property(text, text, (serverName, mediaId) => {
        try {
          assert.deepEqual(mediaAddress(serverName, mediaId), { serverName, mediaId });
          assert.match(mediaId, /^[\w-]+$/);
          assert.match(serverName, /^[\w.:[\]-]+$/);
        } catch (error) {
          assert.ok(error instanceof MatrixError && error.errcode === 'M_NOT_FOUND', String(error));
        }
      }),
    );
  });
});

describe('contentTypeOf', () => {
  it('returns valid content types without the spaces around them, and application/octet-stream for invalid ones', () => {
    for (const type of ['image/png', 'text/plain; charset=utf-8', 'application/x.y+json;a="b"']) {
      assert.equal(contentTypeOf(` ${type}\n`), type);
    }
    for (const invalid of [undefined, '', 'png', 'a/b c', 'text/plain; x=é', `a/${'b'.repeat(300)}`]) {
      assert.equal(contentTypeOf(invalid), unknownType);
    }
  });
});
