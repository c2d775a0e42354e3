import type { JsonValue, RoomVersion } from '../../protocol/index.ts';
import type { VerifiedEvent } from '../placement/verified-event.ts';
import type { StoredEvent } from '../stored-event.ts';
import type { HistoryPlace } from '../timeline/event-store.ts';

/** What became of one event of a transaction. */
export interface PduOutcome {
  /** Why it was not taken. */
  readonly error?: string;
}

/** An event that was checked, or why it may not be used. */
export type Verification = VerifiedEvent | { readonly error: string };

/** Events from other servers: checked, completed with what they refer to, and put at their places. */
export interface Incoming {
  /**
   * Checks format, size, signatures and hash; keys are fetched, all together. An event whose hash is wrong comes back
   * redacted. Results are in the order of `jsons`. Never throws for what the events are.
   * Source: server-server API, "Checks performed on receipt of a PDU", checks 1 to 3.
   */
  verify(version: RoomVersion, jsons: readonly JsonValue[]): Promise<readonly Verification[]>;

  /**
   * Takes the events of one transaction: what passes the checks is on disk when this resolves, and is put at its place
   * later, room by room. By event id; events that have none that can be told are left out.
   */
  receive(origin: string, pdus: readonly JsonValue[]): Promise<Record<string, PduOutcome>>;

  /**
   * Puts one event at its place now, with everything that it refers to and that is not here yet.
   * @param origin whom to ask first
   * @throws MatrixError M_NOT_FOUND for an unknown room; an error when what it needs can not be had
   */
  process(roomId: string, origin: string, event: VerifiedEvent): Promise<StoredEvent>;

  /**
   * Asks other servers for what came before `from` in a room's history. Takes ten seconds at the most; what arrives
   * later is kept.
   * @returns whether there is more to read than before
   */
  backfill(roomId: string, from: HistoryPlace, limit: number): Promise<boolean>;

  /** Takes up what was left when the program ended. */
  start(): void;

  /** Resolves when nothing is under way; what waits for another attempt does not count. */
  settled(): Promise<void>;

  /** Gives up what is under way, to be taken up again by `start`. */
  close(): Promise<void>;
}
