/** A forward extremity: an event that no other event refers to yet. */
export interface Extremity {
  readonly nid: number;
  readonly eventId: string;
  readonly depth: number;
  /** State group after it. */
  readonly stateGroup: number | undefined;
}
