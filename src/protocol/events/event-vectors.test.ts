import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { suite, test } from 'node:test';
import { SigningKey } from '../crypto/ed25519.ts';
import { canonicalJson, parseJsonObject } from '../json/index.ts';
import type { JsonObject } from '../json.ts';
import { getRoomVersion, roomVersions } from '../room-versions.ts';
import { buildEvent } from './build.ts';
import { CanonicalEvent } from './canonical-event.ts';
import { contentHash, referenceHash } from './hashes.ts';
import { checkIntegrity, redactEvent } from './integrity.ts';
import { receivePdu } from './parse.ts';
import { redactPdu } from './redaction.ts';

/** An event that another implementation has hashed, signed and redacted; `event-vectors.py` writes the file. */
interface Vector {
  readonly version: string;
  readonly event: string;
  readonly redacted: string;
  readonly referenceHash: string;
  readonly eventId: string;
}

const vectors: readonly Vector[] = JSON.parse(
  readFileSync(new URL('fixtures/event-vectors.json', import.meta.url), 'utf8'),
);

const seed = Buffer.from('YJDBA9Xnr2sVqXD9Vj7XVUnmFZcZrlw8Md7kMW+3XA1', 'base64');
const signer = { serverName: 'domain', key: SigningKey.fromSeed('1', seed)! };
const serverKey = { key: signer.key.publicKey, validUntilTs: 2_000_000 };

for (const id of roomVersions.keys()) {
  suite(`room version ${id}: events made by another implementation`, () => {
    const version = getRoomVersion(id)!;
    for (const vector of vectors.filter((each) => each.version === id)) {
      const pdu = parseJsonObject(vector.event, { numbers: 'as written' });
      const name = `${pdu.type} ${JSON.stringify(pdu.content).slice(0, 60)}`;

      test(`accepts the id, hashes and signature of ${name}`, () => {
        const received = receivePdu(pdu, version);
        assert.equal(received.event.eventId, vector.eventId);
        assert.equal(received.json, vector.event);
        assert.equal(received.hashMatches, true);
        assert.equal(referenceHash(pdu, version), vector.referenceHash);
        assert.equal(contentHash(new CanonicalEvent(pdu, version)), (pdu.hashes as JsonObject).sha256);
        assert.equal(checkIntegrity(received, () => serverKey, 1_000_000).outcome, 'ok');
      });

      test(`redacts ${name}`, () => {
        const numbers = version.strictCanonicalJson ? 'strict' : 'as written';
        assert.equal(canonicalJson(redactPdu(pdu, version), numbers), vector.redacted);
        const redacted = redactEvent(receivePdu(pdu, version).event);
        assert.equal(redacted.json, vector.redacted);
        assert.equal(redacted.event.eventId, vector.eventId);
      });

      // Some vectors have fields that this server reads but never writes.
      const neverWritten = ['membership', 'prev_state', 'origin', 'org.example.top'];
      if (neverWritten.some((key) => pdu[key] !== undefined) || typeof pdu.depth !== 'number') continue;

      test(`builds ${name}`, () => {
        const { event } = receivePdu(pdu, version);
        const { redacts: _redacts, ...content } = event.content;
        const draft = {
          ...event,
          content: version.redactsIn === 'content' ? content : event.content,
          roomId: pdu.room_id as string | undefined,
          eventId: version.eventId === 'origin' ? event.eventId : undefined,
          referenceHash: () => 'thishashcoversallfieldsincasethisisredacted',
        };
        const built = buildEvent(draft, version, signer);
        assert.equal(built.json, vector.event);
        assert.deepEqual(built.event, event);
      });
    }
  });
}
