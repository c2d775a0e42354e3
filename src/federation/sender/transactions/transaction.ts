import { canonicalJson, canonicalString } from '../../../protocol/index.ts';
import type { Edu } from './edu.ts';
import type { OutgoingPdu } from './outgoing-pdu.ts';

/** A durable EDU of the outbox. */
export interface DurableEdu {
  readonly id: number;
  readonly type: string;
  /** Content as canonical JSON. */
  readonly content: string;
}

/**
 * The rooms whose newest events a transaction contains. Maps the nid of a room to a stream position: a destination that
 * has received these events lacks no event of the room up to that position.
 */
export type CaughtUp = ReadonlyMap<number, number>;

/** Events and EDUs sent together, under an id that stays the same for repetitions. */
export interface Transaction {
  readonly id: string;
  readonly pdus: readonly OutgoingPdu[];
  readonly durable: readonly DurableEdu[];
  /** Sent with the first attempt only. If it fails, those that have not expired are sent in later transactions. */
  ephemeral: readonly Edu[];
  /** Set when the events are only the newest events of rooms, and not all events that the destination lacks. */
  readonly caughtUp: CaughtUp | undefined;
}

/** Returns the size of events and durable EDUs in characters. */
export function sizeOf({ pdus, durable }: Pick<Transaction, 'pdus' | 'durable'>): number {
  let size = 0;
  for (const { json } of pdus) size += json.length;
  for (const { content } of durable) size += content.length;
  return size;
}

/**
 * Serializes a transaction as canonical JSON from serialized parts.
 * @param now milliseconds since the epoch
 */
export function transactionText(
  { pdus, durable, ephemeral }: Transaction,
  origin: string,
  now: number,
): string {
  const edus = [
    ...durable.map(({ type, content }) => eduText(type, content)),
    ...ephemeral.map(({ type, content }) => eduText(type, canonicalJson(content, 'as written'))),
  ];
  const events = pdus.map(({ json }) => json).join(',');
  const members = `"origin":${canonicalString(origin)},"origin_server_ts":${Math.trunc(now)}`;
  return `{"edus":[${edus.join(',')}],${members},"pdus":[${events}]}`;
}

const eduText = (type: string, content: string) =>
  `{"content":${content},"edu_type":${canonicalString(type)}}`;
