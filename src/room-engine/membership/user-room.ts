import type { Membership } from '../../protocol/index.ts';

/** A user's membership in a room. */
export interface UserRoom {
  readonly roomId: string;
  readonly roomNid: number;
  readonly membership: Membership;
  /** nid of the membership event. */
  readonly eventNid: number;
  /** Position on the stream of the last change of the membership; a changed profile does not count. */
  readonly stream: number;
  readonly forgotten: boolean;
}
