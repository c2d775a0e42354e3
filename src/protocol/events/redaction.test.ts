import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { anyRoomVersion, draftOf } from '../../../test/protocol/arbitrary.ts';
import { newSigningKey } from '../../../test/support/inputs/signing-key.ts';
import { runs } from '../../../test/support/inputs/thoroughness.ts';
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

suite('redactPdu, in every room version', () => {
  test('redactPdu leaves a redacted event unchanged', () => {
    fc.assert(
      fc.property(built, ({ version, event }) => {
        const once = redactPdu(event.pdu, version);
        assert.deepEqual(redactPdu(once, version), once);
      }),
      { numRuns: runs(500) },
    );
  });

  test('keeps the reference hash', () => {
    fc.assert(
      fc.property(built, ({ version, event }) => {
        const redacted = redactPdu(event.pdu, version);
        assert.equal(referenceHash(redacted, version), referenceHash(event.pdu, version));
      }),
      { numRuns: runs(500) },
    );
  });

  test('adds no field, changes no remaining field except the content, and leaves the original event as it was', () => {
    fc.assert(
      fc.property(built, ({ version, event }) => {
        const before = JSON.stringify(event.pdu);
        const redacted: JsonObject = redactPdu(event.pdu, version);
        assert.equal(JSON.stringify(event.pdu), before);
        for (const key of Object.keys(redacted)) {
          if (key !== 'content') assert.equal(redacted[key], event.pdu[key]);
        }
        if (JSON.stringify(redacted.content) !== JSON.stringify(event.pdu.content)) {
          assert.notEqual(
            contentHash(new CanonicalEvent(redacted, version)),
            contentHash(new CanonicalEvent(event.pdu, version)),
          );
        }
      }),
      { numRuns: runs(500) },
    );
  });
});

suite('redactContent of a third-party invite', () => {
  const [v10, v11] = ['10', '11'].map((id) => getRoomVersion(id)!);
  const redact = (invite: JsonObject['x'], version = v11!) =>
    redactContent('m.room.member', { membership: 'invite', third_party_invite: invite }, version);

  test('keeps only the field `signed` since room version 11, and nothing up to room version 10', () => {
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

test('redactContent keeps nothing of event types named like properties of Object', () => {
  for (const type of ['__proto__', 'constructor', 'toString', '']) {
    assert.deepEqual(redactContent(type, { membership: 'join', body: 'x' }, getRoomVersion('11')!), {});
  }
});

test('redactContent ignores inherited properties', () => {
  const content = Object.create({ membership: 'join' }) as JsonObject;
  assert.deepEqual(redactContent('m.room.member', content, getRoomVersion('11')!), {});
});
