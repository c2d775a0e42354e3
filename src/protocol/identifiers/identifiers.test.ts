import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { cpuTime } from '../../../test/support/clocks/cpu-time.ts';
import { codePoint } from '../../../test/support/inputs/code-point.ts';
import { getRoomVersion } from '../room-versions.ts';
import {
  fitsBytes,
  fitsCodePoints,
  isCompliantUserId,
  isDeviceId,
  isEventId,
  isEventIdOf,
  isHashRoomId,
  isMxcUri,
  isRoomAlias,
  isRoomId,
  isServerName,
  isSigningKeyName,
  isUserId,
  isValidNewLocalpart,
  localpartOf,
  newUserId,
  parseKeyId,
  parseMxcUri,
  parseRoomAlias,
  parseRoomId,
  parseUserId,
  type ServerName,
  serverOfEventId,
  serverOfUser,
} from './index.ts';

const hash = 'Rqnc-F-dvnEYJTyHq_iKxU2bZ1CI92-kuZq3a5lr5Zg';

suite('user ids', () => {
  test('splits user ids at the first colon', () => {
    const parts = { localpart: 'alice', serverName: 'example.org:8448' };
    assert.deepEqual(parseUserId('@alice:example.org:8448'), parts);
    assert.equal(serverOfUser('@alice:[::1]:80'), '[::1]:80');
    assert.equal(localpartOf('@alice:[::1]:80'), 'alice');
  });

  test('accepts historical user ids, and only printable ASCII localparts as compliant', () => {
    for (const id of ['@Alice:example.org', '@a!b*c:example.org', '@alice+1=2/3:example.org']) {
      assert.ok(isUserId(id) && isCompliantUserId(id), id);
    }
    for (const id of ['@:example.org', '@Älice:example.org', '@a b:example.org', '@\u0001\n:example.org']) {
      assert.ok(isUserId(id) && !isCompliantUserId(id), JSON.stringify(id));
    }
  });

  test('refuses text that is not a user id', () => {
    const wrong = [
      '',
      '@',
      '@alice',
      'alice:example.org',
      '@a\0b:example.org',
      '@a\ud800:example.org',
      '@a:',
      '@a: ',
    ];
    for (const id of [...wrong, '!a:example.org', undefined, 1]) {
      assert.ok(!isUserId(id) && !isCompliantUserId(id), JSON.stringify(id));
    }
  });

  test('refuses user ids of more than 255 bytes', () => {
    const localpart = 'x'.repeat(255 - '@:example.org'.length);
    assert.ok(isUserId(`@${localpart}:example.org`));
    assert.ok(!isUserId(`@${localpart}x:example.org`));
    assert.ok(!isUserId(`@${localpart.slice(1)}é:example.org`));
    assert.equal(newUserId(`${localpart}x`, 'example.org' as ServerName), undefined);
  });

  test('allows only the narrow grammar for new accounts', () => {
    assert.equal(newUserId('a.b_c=d-e/f+0', 'example.org' as ServerName), '@a.b_c=d-e/f+0:example.org');
    for (const localpart of ['', 'Alice', 'a b', 'ä', 'a:b', 'a\n']) {
      assert.equal(isValidNewLocalpart(localpart), false);
      assert.equal(newUserId(localpart, 'example.org' as ServerName), undefined);
    }
  });
});

suite('room ids and aliases', () => {
  test('parses room ids with and without a domain', () => {
    assert.deepEqual(parseRoomId('!a/b:example.org'), { opaqueId: 'a/b', serverName: 'example.org' });
    assert.deepEqual(parseRoomId(`!${hash}`), { opaqueId: hash, serverName: undefined });
    assert.ok(isHashRoomId(`!${hash}`));
    for (const id of ['!a:example.org', `!${hash}x`, `!${hash.replace('-', '+')}`, `$${hash}`, undefined]) {
      assert.ok(!isHashRoomId(id));
    }
    for (const id of [
      '',
      '!',
      'a:example.org',
      '!a:',
      '!a\0:example.org',
      `!${'x'.repeat(255)}`,
      '!\ud800',
      1,
    ]) {
      assert.ok(!isRoomId(id), JSON.stringify(id));
    }
  });

  test('parses room aliases', () => {
    assert.deepEqual(parseRoomAlias('#räum 1:example.org'), {
      localpart: 'räum 1',
      serverName: 'example.org',
    });
    for (const alias of ['#a', 'a:example.org', '#a:', '#a\0b:example.org', `#${'ä'.repeat(130)}:a`, null]) {
      assert.ok(!isRoomAlias(alias), JSON.stringify(alias));
    }
  });
});

suite('event ids', () => {
  const [v1, v3, v4] = ['1', '3', '4'].map((id) => getRoomVersion(id)!);

  test('accepts only event ids in the format of the given room version', () => {
    const old = '$opaque:example.org';
    const base64 = `$${hash.replace('-', '+').replace('_', '/').replaceAll('-', '/')}`;
    assert.deepEqual(
      [v1!, v3!, v4!].map((version) => [old, base64, `$${hash}`].map((id) => isEventIdOf(version, id))),
      [
        [true, false, false],
        [false, true, false],
        [false, false, true],
      ],
    );
    assert.equal(isEventIdOf(v4!, undefined), false);
    assert.equal(serverOfEventId(old), 'example.org');
    assert.equal(serverOfEventId(`$${hash}`), undefined);
  });

  test('accepts any opaque event id when the room version is not known', () => {
    for (const id of ['$a', `$${hash}`, '$a:example.org']) assert.ok(isEventId(id));
    for (const id of ['', '$', 'a', '$a\0', `$${'x'.repeat(255)}`, '$\udc00', undefined])
      assert.ok(!isEventId(id));
  });
});

suite('other identifiers', () => {
  test('parses key ids and checks names of signing keys', () => {
    assert.deepEqual(parseKeyId('ed25519:a_AbCd'), { algorithm: 'ed25519', name: 'a_AbCd' });
    assert.deepEqual(parseKeyId('signed_curve25519:A:B'), { algorithm: 'signed_curve25519', name: 'A:B' });
    for (const id of ['', 'ed25519', 'ed25519:', ':a', 'ED:a', `ed25519:${'x'.repeat(255)}`]) {
      assert.equal(parseKeyId(id), undefined, id);
    }
    assert.ok(isSigningKeyName('a_AbCd') && !isSigningKeyName('a-b') && !isSigningKeyName(''));
  });

  test('checks device ids', () => {
    for (const id of ['ABCDEFGH', 'my device ☎', '.']) assert.ok(isDeviceId(id));
    for (const id of ['', 'a\0', 'x'.repeat(256), '\ud800', undefined]) assert.ok(!isDeviceId(id));
  });

  test('parses content URIs, and refuses malformed ones, also those with `..` as server name or media id', () => {
    assert.deepEqual(parseMxcUri('mxc://example.org:8448/aB_-1'), {
      serverName: 'example.org:8448',
      mediaId: 'aB_-1',
    });
    const wrong = [
      'mxc://example.org',
      'mxc://example.org/',
      'mxc:///a',
      'mxc://example.org/..',
      'http://a/b',
    ];
    for (const uri of [...wrong, 'mxc://example.org/a/b', 'mxc://../a%2fb', 'mxc://a/b?c', 1]) {
      assert.ok(!isMxcUri(uri), String(uri));
    }
  });
});

test('fitsBytes and fitsCodePoints count bytes and code points, not UTF-16 units', () => {
  assert.ok(fitsBytes('é'.repeat(127)) && !fitsBytes('é'.repeat(128)));
  assert.ok(fitsBytes('😀'.repeat(63)) && !fitsBytes('😀'.repeat(64)));
  assert.ok(fitsCodePoints('😀'.repeat(255), 255) && !fitsCodePoints('😀'.repeat(256), 255));
  fc.assert(
    fc.property(fc.string({ unit: codePoint }), fc.nat(40), (text, max) => {
      assert.equal(fitsBytes(text, max), Buffer.byteLength(text) <= max);
      assert.equal(fitsCodePoints(text, max), [...text].length <= max);
    }),
  );
});

test('identifier guards return true or false for any value in bounded time', () => {
  const guards = [isUserId, isRoomId, isRoomAlias, isEventId, isServerName, isMxcUri];
  fc.assert(
    fc.property(fc.anything(), (value) => {
      for (const guard of guards) assert.equal(typeof guard(value), 'boolean');
    }),
  );
  const took = cpuTime(() => {
    for (const sigil of ['@', '#', '!', '$', 'mxc://', 'ed25519:', '']) {
      for (const part of ['a', ':', '\0', '/', '😀']) {
        for (const guard of guards) assert.equal(guard(sigil + part.repeat(1e6)), false);
      }
    }
  });
  assert.ok(took < 5000, `${took} ms`);
});
