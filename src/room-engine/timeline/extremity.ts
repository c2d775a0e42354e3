/** A forward extremity: an event that no other event names as a previous event. */
export interface Extremity {
  readonly nid: number;
  readonly eventId: string;
  readonly depth: number;
  /** State group after the event. */
  readonly stateGroup: number | undefined;
}
