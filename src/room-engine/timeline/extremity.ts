/** A forward extremity: an event that is not a previous event of any other event. */
export interface Extremity {
  readonly nid: number;
  readonly eventId: string;
  readonly depth: number;
  /** State group after the event. */
  readonly stateGroup: number | undefined;
}
