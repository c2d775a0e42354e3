import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { anyRoomVersion, draftOf } from '../../../test/protocol/arbitrary.ts';
import { newSigningKey } from '../../../test/support/inputs/signing-key.ts';
import type { JsonObject } from '../json.ts';
import { getRoomVersion } from '../room-versions.ts';
import { buildEvent } from './build.ts';
import { CanonicalEvent } from './canonical-event.ts';
import { contentHash, referenceHash } from './hashes.ts';
import { redactContent, redactPdu } from './redaction.ts';

const signer = { serverName: 'example.org', key: newSigningKey('1') };

const built = anyRoomVersion.chain((version) =>
  draftOf(version).map((draft) => ({ version, event: buildEvent(draft, version, signer).event })),
);

suite('properties, in every room version', () => {
  test('redacting twice is redacting once', () => {
    fc.assert(
      fc.property(built, ({ version, event }) => {
        const once = redactPdu(event.pdu, version);
        assert.deepEqual(redactPdu(once, version), once);
      }),
      { numRuns: 500 },
    );
  });

  test('the reference hash of a redacted event is that of the event', () => {
    fc.assert(
      fc.property(built, ({ version, event }) => {
        const redacted = redactPdu(event.pdu, version);
        assert.equal(referenceHash(redacted, version), referenceHash(event.pdu, version));
      }),
      { numRuns: 500 },
    );
  });

  test('nothing is added or changed, and the event itself stays as it was', () => {
    fc.assert(
      fc.property(built, ({ version, event }) => {
        const before = JSON.stringify(event.pdu);
        const redacted: JsonObject = redactPdu(event.pdu, version);
        assert.equal(JSON.stringify(event.pdu), before);
        for (const key of Object.keys(redacted)) {
          if (key !== 'content') assert.equal(redacted[key], event.pdu[key]);
        }
        const bare = event.pdu.content;
        if (JSON.stringify(redacted.content) !== JSON.stringify(bare)) {
          assert.notEqual(
            contentHash(new CanonicalEvent(redacted, version)),
            contentHash(new CanonicalEvent(event.pdu, version)),
          );
        }
      }),
      { numRuns: 500 },
    );
  });
});

suite('what is kept of a third-party invite', () => {
  const [v10, v11] = ['10', '11'].map((id) => getRoomVersion(id)!);
  const redact = (invite: JsonObject['x'], version = v11!) =>
    redactContent('m.room.member', { membership: 'invite', third_party_invite: invite }, version);

  test('since version 11, `signed`', () => {
    const signed = { mxid: '@a:example.org', token: 'abc' };
    assert.deepEqual(redact({ signed, display_name: 'A' }), {
      membership: 'invite',
      third_party_invite: { signed },
    });
    assert.deepEqual(redact({ signed }, v10), { membership: 'invite' });
    assert.deepEqual(redact({ display_name: 'A' }), { membership: 'invite', third_party_invite: {} });
    for (const malformed of [null, 'signed', [{ signed }], 1]) {
      assert.deepEqual(redact(malformed), { membership: 'invite' });
    }
  });
});

test('event types that are members of every object keep nothing', () => {
  for (const type of ['__proto__', 'constructor', 'toString', '']) {
    assert.deepEqual(redactContent(type, { membership: 'join', body: 'x' }, getRoomVersion('11')!), {});
  }
});

test('members that are inherited by every object are not taken for content', () => {
  const content = Object.create({ membership: 'join' }) as JsonObject;
  assert.deepEqual(redactContent('m.room.member', content, getRoomVersion('11')!), {});
});
