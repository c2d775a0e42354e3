import {
  isSignedByServer,
  requiredSigners,
  type ServerKeyLookup,
  type VerifySignature,
} from '../crypto/event-signatures.ts';
import type { RoomEvent } from '../event.ts';
import { CanonicalEvent } from './canonical-event.ts';
import type { ReceivedEvent } from './parse.ts';
import { redactPdu } from './redaction.ts';
import { roomEventOf } from './room-event.ts';

/**
 * What to make of a received event. `ok`: use it. `redact`: its hash is wrong, so use only `event`, which is
 * redacted. `reject`: a signature is missing or wrong, so drop it.
 */
export type Integrity =
  | { readonly outcome: 'ok' | 'redact'; readonly event: RoomEvent; readonly json: string }
  | { readonly outcome: 'reject'; readonly reason: string };

/**
 * Checks signatures and content hash of a received event. Never throws.
 * Source: server-server API, "Validating hashes and signatures on received events".
 * @param keyOf The servers' keys: fetch those of `requiredSigners(received.event)` before.
 * @param now Milliseconds since the epoch.
 * @param verify By default on this thread. To verify many signatures elsewhere: note what is asked here and say yes to
 * all, have that verified, and ask again with the answers.
 */
export function checkIntegrity(
  received: ReceivedEvent,
  keyOf: ServerKeyLookup,
  now: number,
  verify?: VerifySignature,
): Integrity {
  const { event, signingInput, json } = received;
  const signers = requiredSigners(event);
  if (signers === undefined)
    return { outcome: 'reject', reason: 'The event names a server that can not exist' };
  for (const server of signers) {
    if (!isSignedByServer(event, signingInput, server, keyOf, now, verify)) {
      return { outcome: 'reject', reason: `The event has no valid signature of ${server}` };
    }
  }
  return received.hashMatches ? { outcome: 'ok', event, json } : { outcome: 'redact', ...redactEvent(event) };
}

/** The event as a redaction leaves it, with its canonical JSON. The id stays the same. */
export function redactEvent(event: RoomEvent): { readonly event: RoomEvent; readonly json: string } {
  const { version, eventId } = event;
  const pdu = redactPdu(event.pdu, version);
  return { event: roomEventOf(pdu, version, eventId), json: new CanonicalEvent(pdu, version).json };
}
