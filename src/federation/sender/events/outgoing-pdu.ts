import { canonicalJson, redactEvent } from '../../../protocol/index.ts';
import type { StoredEvent } from '../../../room-engine/index.ts';

/** An event on its way to other servers. All that it goes to share one. */
export interface OutgoingPdu {
  readonly nid: number;
  readonly roomNid: number;
  /** Its place on the stream of rooms. */
  readonly stream: number;
  /** When it was sent, as it says: milliseconds since the epoch. */
  readonly originServerTs: number;
  /** The PDU as canonical JSON. */
  readonly json: string;
}

/** The event as it is sent now: what a redaction has taken away is not sent. */
export function outgoingPdu(stored: StoredEvent & { readonly stream: number }): OutgoingPdu {
  const { nid, roomNid, stream, event, redactedBy } = stored;
  const json = redactedBy === undefined ? canonicalJson(event.pdu, 'as written') : redactEvent(event).json;
  return { nid, roomNid, stream, originServerTs: event.originServerTs, json };
}
