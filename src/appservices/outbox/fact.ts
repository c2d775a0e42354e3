import type { StoredEvent } from '../../room-engine/index.ts';

/** A change that one of the streams has published and that services may have to receive. */
export type Fact =
  | {
      readonly kind: 'event';
      readonly position: number;
      readonly stored: StoredEvent;
      /** Changes of memberships in the room, by this event or by the state resolution that it caused. */
      readonly memberships: readonly MembershipStep[];
    }
  /** A change of memberships without a new event, for instance because the state of a room was completed. */
  | {
      readonly kind: 'memberships';
      readonly position: number;
      readonly roomId: string;
      readonly memberships: readonly MembershipStep[];
    }
  | {
      readonly kind: 'to-device' | 'key counts';
      readonly position: number;
      readonly userId: string;
      readonly deviceId: string;
    }
  | { readonly kind: 'device list'; readonly position: number; readonly userId: string };

/** A fact that is handled only for its changes of memberships. */
export type MembershipFact = Extract<Fact, { kind: 'memberships' }>;

/** A change of the membership of a user, as far as it concerns whether the user is joined. */
export interface MembershipStep {
  readonly userId: string;
  /** `undefined` where the earlier membership is not known. */
  readonly wasJoined: boolean | undefined;
  readonly isJoined: boolean;
}
