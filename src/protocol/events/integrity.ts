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
 * The result of checking a received event. `ok`: use it. `redact`: its content hash does not match, so use `event`, the
 * redacted form. `reject`: the signature of a required server is missing or wrong, so drop the event.
 */
export type Integrity =
  | { readonly outcome: 'ok' | 'redact'; readonly event: RoomEvent; readonly json: string }
  | { readonly outcome: 'reject'; readonly reason: string };

/**
 * Checks a received event, in the order of the specification: rejects it if a required signature is missing or wrong,
 * then redacts it if its content hash does not match. Never throws.
 * Source: server-server API, "Validating hashes and signatures on received events".
 * @param keyOf the servers' keys; fetch the keys of `requiredSigners(received.event)` first
 * @param now milliseconds since the epoch
 * @param verify verifies on this thread by default. To verify many signatures elsewhere, record the calls and return
 * true, have the recorded signatures verified, and check again with the results.
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
    return { outcome: 'reject', reason: 'The event names a server that cannot exist' };
  for (const server of signers) {
    if (!isSignedByServer(event, signingInput, server, keyOf, now, verify)) {
      return { outcome: 'reject', reason: `The event has no valid signature of ${server}` };
    }
  }
  return received.hashMatches ? { outcome: 'ok', event, json } : { outcome: 'redact', ...redactEvent(event) };
}

/** Returns the event as a redaction leaves it, and its canonical JSON. The id stays the same. */
export function redactEvent(event: RoomEvent): { readonly event: RoomEvent; readonly json: string } {
  const { version, eventId } = event;
  const pdu = redactPdu(event.pdu, version);
  return { event: roomEventOf(pdu, version, eventId), json: new CanonicalEvent(pdu, version).json };
}
