import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { decodeBase64 } from '../crypto/base64.ts';
import { SigningKey } from '../crypto/ed25519.ts';
import type { JsonObject } from '../json.ts';
import { getRoomVersion, roomVersions } from '../room-versions.ts';
import { CanonicalEvent } from './canonical-event.ts';
import { contentHash, hasContentHash, referenceHash } from './hashes.ts';

const key = SigningKey.fromSeed('1', decodeBase64('YJDBA9Xnr2sVqXD9Vj7XVUnmFZcZrlw8Md7kMW+3XA1')!)!;

interface Example {
  readonly name: string;
  readonly event: JsonObject;
  readonly hash: string;
  readonly signature: string;
}

const examples: readonly Example[] = [
  {
    name: 'a minimal event',
    event: {
      room_id: '!x:domain',
      sender: '@a:domain',
      origin: 'domain',
      origin_server_ts: 1000000,
      signatures: {},
      hashes: {},
      type: 'X',
      content: {},
      prev_events: [],
      auth_events: [],
      depth: 3,
      unsigned: { age_ts: 1000000 },
    },
    hash: '5jM4wQpv6lnBo7CLIghJuHdW+s2CMBJPUOGOC89ncos',
    signature: 'KxwGjPSDEtvnFgU00fwFz+l6d2pJM6XBIaMEn81SXPTRl16AqLAYqfIReFGZlHi5KLjAWbOoMszkwsQma+lYAg',
  },
  {
    name: 'an event with redactable content',
    event: {
      content: { body: 'Here is the message content' },
      event_id: '$0:domain',
      origin: 'domain',
      origin_server_ts: 1000000,
      type: 'm.room.message',
      room_id: '!r:domain',
      sender: '@u:domain',
      signatures: {},
      unsigned: { age_ts: 1000000 },
    },
    hash: 'onLKD1bGljeBWQhWZ1kaP9SorVmRQNdN5aM2JYU2n/g',
    signature: 'Wm+VzmOUOz08Ds+0NTWb1d4CZrVsJSikkeRxh6aCcUwu6pNC78FunoD7KNWzqFn241eYHYMGCA5McEiVPdhzBA',
  },
];

suite('content hash and signature: examples of the specification', () => {
  const version = getRoomVersion('1')!;
  for (const { name, event, hash, signature } of examples) {
    test(`hashes and signs ${name}`, () => {
      assert.equal(contentHash(new CanonicalEvent(event, version)), hash);
      const canonical = new CanonicalEvent(event, version);
      canonical.hashes = { sha256: hash };
      assert.equal(key.sign(canonical.signingInput), signature);
    });
  }
});

test('content and reference hash ignore signatures and unsigned, and the content hash ignores hashes', () => {
  const event = examples[0]!.event;
  for (const version of roomVersions.values()) {
    const changed = { ...event, signatures: { a: { 'ed25519:1': 'b' } }, unsigned: { age: 1 } };
    assert.equal(
      contentHash(new CanonicalEvent(changed, version)),
      contentHash(new CanonicalEvent(event, version)),
    );
    assert.equal(referenceHash(changed, version), referenceHash(event, version));
    const { hashes: _hashes, ...bare } = event;
    assert.equal(
      contentHash(new CanonicalEvent(bare, version)),
      contentHash(new CanonicalEvent(event, version)),
    );
    assert.notEqual(referenceHash(bare, version), referenceHash(event, version));
  }
});

test('hasContentHash compares decoded hashes, whatever their padding and base64 alphabet', () => {
  const expected = '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU';
  for (const written of [expected, `${expected}=`, expected.replaceAll('+', '-').replaceAll('/', '_')]) {
    assert.ok(hasContentHash({ hashes: { sha256: written } }, expected));
  }
  for (const written of ['', expected.slice(1), expected.replace('4', '5'), `${expected} `, 1, null]) {
    assert.ok(!hasContentHash({ hashes: { sha256: written } }, expected));
  }
  for (const hashes of [undefined, {}, [], 'sha256', null]) assert.ok(!hasContentHash({ hashes }, expected));
});
