import { canonicalJson, canonicalString } from '../../../protocol/index.ts';
import type { Edu } from '../edus/edu.ts';
import type { OutgoingPdu } from '../events/outgoing-pdu.ts';

/** Source: server-server API, "Transactions". */
export const [maxPdus, maxEdus] = [50, 100];

/** An EDU of the outbox. */
export interface DurableEdu {
  readonly id: number;
  readonly type: string;
  /** Canonical JSON. */
  readonly content: string;
}

/** Rooms of which a transaction brings its destination up to date, and up to which place on the stream of rooms. */
export type CaughtUp = ReadonlyMap<number, number>;

/** What is sent together, under an id that stays when it is sent again. */
export interface Transaction {
  readonly id: string;
  readonly pdus: readonly OutgoingPdu[];
  readonly durable: readonly DurableEdu[];
  /** Only with the first attempt: when that has failed, those that are still worth sending come in a later one. */
  ephemeral: readonly Edu[];
  /** Set when the events are the newest ones of rooms, and not all that the destination lacks. */
  readonly caughtUp: CaughtUp | undefined;
}

/** Characters of what a transaction holds of events and durable EDUs. */
export function sizeOf({ pdus, durable }: Pick<Transaction, 'pdus' | 'durable'>): number {
  let size = 0;
  for (const { json } of pdus) size += json.length;
  for (const { content } of durable) size += content.length;
  return size;
}

/**
 * A transaction as canonical JSON, made of texts that are there already.
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
