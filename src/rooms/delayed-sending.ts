import type { JsonObject } from '../protocol/index.ts';
import type { Sender } from './sending.ts';

/** An event that is to be sent later. */
export interface EventToDelay {
  readonly roomId: string;
  readonly type: string;
  /** Present for state events. */
  readonly stateKey?: string | undefined;
  readonly content: JsonObject;
  /** Absent where the request has none, as for state. */
  readonly txnId?: string | undefined;
}

/** Sends events later; supplied at composition. Source: MSC4140. */
export interface DelayedSending {
  /**
   * @param delay milliseconds
   * @returns the id by which the delay can be managed
   * @throws MatrixError when events can not be delayed, or not for so long
   */
  schedule(sender: Sender, event: EventToDelay, delay: number): Promise<string>;
}
