/** A forward extremity: an event on the timeline that is not a previous event of another event on the timeline. */
export interface Extremity {
  readonly nid: number;
  readonly eventId: string;
  readonly depth: number;
  /** State group after the event. */
  readonly stateGroup: number | undefined;
}
