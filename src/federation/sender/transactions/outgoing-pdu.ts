import { canonicalJson, redactEvent } from '../../../protocol/index.ts';
import { isExpired, type StoredEvent } from '../../../room-engine/index.ts';

/** An event to be sent to other servers; all destinations share one object. */
export interface OutgoingPdu {
  readonly nid: number;
  readonly roomNid: number;
  /** Position on the stream of rooms. */
  readonly stream: number;
  /** `origin_server_ts` of the event: milliseconds since the epoch. */
  readonly originServerTs: number;
  /** The PDU as canonical JSON. */
  readonly json: string;
}

/**
 * Returns the event in its current form: a redacted event is sent in redacted form, and so is an expired message.
 * @param expiredBefore the time before which messages of the room have expired; milliseconds since the epoch
 */
export function outgoingPdu(
  stored: StoredEvent & { readonly stream: number },
  expiredBefore = Number.NEGATIVE_INFINITY,
): OutgoingPdu {
  const { nid, roomNid, stream, event, redactedBy } = stored;
  const isUnredacted = redactedBy === undefined && !isExpired(stored, expiredBefore);
  const json = isUnredacted ? canonicalJson(event.pdu, 'as written') : redactEvent(event).json;
  return { nid, roomNid, stream, originServerTs: event.originServerTs, json };
}
