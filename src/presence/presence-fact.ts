import type { FactCodec } from '../kernel/streams/index.ts';
import type { PresenceStatus } from './presence-status.ts';

/** The presence of some users has changed. */
export interface PresenceFact {
  /** User id to the new presence. */
  readonly changes: ReadonlyMap<string, PresenceStatus>;
  /** Room id to the users whose new presence is sent to the members of that room. */
  readonly rooms: ReadonlyMap<string, readonly string[]>;
  /** Users who receive changes though they share no room, each with the users whose presence they receive. */
  readonly routed?: ReadonlyMap<string, readonly string[]>;
}

/** The maps as lists of their entries. */
type Encoded = readonly [
  changes: readonly (readonly [userId: string, Omit<PresenceStatus, 'statusMsg'> & { statusMsg?: string }])[],
  rooms: readonly (readonly [roomId: string, userIds: readonly string[]])[],
  routed: readonly (readonly [receiver: string, userIds: readonly string[]])[],
];

/** The codec of changes of presence. */
export const presenceFacts: FactCodec<PresenceFact> = {
  encode: ({ changes, rooms, routed = [] }) => [[...changes], [...rooms], [...routed]] as Encoded,
  decode: (json) => {
    const [changes, rooms, routed] = json as Encoded;
    return {
      changes: new Map(changes.map(([userId, status]) => [userId, { statusMsg: undefined, ...status }])),
      rooms: new Map(rooms),
      ...(routed.length > 0 && { routed: new Map(routed) }),
    };
  },
};
