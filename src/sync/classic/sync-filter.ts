import type { ClientEvent, RoomEvent } from '../../protocol/index.ts';

/** A client's filter after compilation. Source: client-server API, "Filtering". */
export interface SyncFilter {
  acceptsRoom(roomId: string): boolean;
  readonly includeLeave: boolean;
  readonly timeline: EventRule & { readonly limit: number };
  readonly state: EventRule & {
    readonly lazyLoadMembers: boolean;
    readonly includeRedundantMembers: boolean;
  };
  readonly ephemeral: TypeRule;
  readonly roomAccountData: TypeRule;
  readonly accountData: TypeRule;
  readonly presence: TypeRule;
  readonly unreadThreadNotifications: boolean;
  /** Leaves of an event what `event_fields` names; `undefined` when everything is wanted. */
  readonly pick: ((event: ClientEvent) => ClientEvent) | undefined;
}

export interface EventRule {
  /** Whether events of that room are wanted at all. */
  acceptsRoom(roomId: string): boolean;
  accepts(event: RoomEvent): boolean;
}

export interface TypeRule {
  acceptsRoom(roomId: string): boolean;
  acceptsType(type: string, sender?: string): boolean;
}
