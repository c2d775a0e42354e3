import type { NetworkConditions } from './network.ts';
import type { Dice } from './random.ts';

/** Parameters of a run, derived from its seed. */
export interface Plan {
  readonly servers: number;
  /** Users of each server. */
  readonly users: number;
  readonly roomVersion: string;
  readonly isPublic: boolean;
  readonly conditions: NetworkConditions;
  /** Number of actions of users. */
  readonly actions: number;
  /** Milliseconds that the actions are spread over. */
  readonly duration: number;
  /** Times when many actions coincide, in milliseconds from the start of the actions; partitions often begin then. */
  readonly bursts: readonly number[];
  readonly partitions: number;
  readonly crashes: number;
  /** Maximum difference of a clock from simulated time, in milliseconds. */
  readonly skew: number;
  /** Maximum time until an operation on the disk runs, in simulated milliseconds. */
  readonly maxDiskDelay: number;
  /** Relative frequency of each kind of action. */
  readonly actionWeights: Readonly<Record<ActionName, number>>;
  /** Number of events with the same prev_events that one server makes; 0 for none. */
  readonly forkWidth: number;
  /** Whether servers request the full room state when they join, instead of `omit_members`. */
  readonly joinsWithAllMembers: boolean;
  readonly isEncrypted: boolean;
  /** Number of actions that federate by EDU: see `edu-traffic.ts`. */
  readonly eduActions: number;
  /**
   * Of the answers that contain a state, the share whose power levels are replaced by rejected ones, from 0 to 1.
   */
  readonly rejectedState: number;
}

export type ActionName =
  | 'message'
  | 'topic'
  | 'note'
  | 'power'
  | 'ban'
  | 'unban'
  | 'kick'
  | 'invite'
  | 'leave'
  | 'join'
  | 'joinRules'
  | 'knock'
  | 'endInviteOrKnock'
  | 'redact';

/** Every 250th seed has a fork with thousands of forward extremities. */
const wideForkEvery = 250;

const peacefulWeights = {
  message: 40,
  topic: 14,
  note: 10,
  power: 8,
  ban: 4,
  unban: 6,
  kick: 4,
  invite: 5,
  leave: 4,
  join: 16,
  joinRules: 5,
  redact: 6,
  knock: 6,
  endInviteOrKnock: 5,
};

/** Frequencies in a room whose users moderate and ban each other. */
const hostileWeights = {
  ...peacefulWeights,
  message: 15,
  power: 22,
  ban: 16,
  unban: 14,
  kick: 10,
  join: 30,
  joinRules: 8,
};

/** Derives the plan of a run from its seed. @param dice seeded with the same seed */
export function planOf(seed: number, dice: Dice): Plan {
  const isHeavy = dice.chance(0.02);
  const forkWidth = seed % wideForkEvery === wideForkEvery - 1 ? dice.int(1_000, 2_000) : 0;
  const conditions = dice.pick([
    { lostRequests: 0, lostAnswers: 0, duplicates: 0, maxTransit: 50 },
    { lostRequests: 0.02, lostAnswers: 0.02, duplicates: 0.05, maxTransit: 500 },
    { lostRequests: 0.1, lostAnswers: 0.1, duplicates: 0.2, maxTransit: 5_000 },
  ]);
  const duration = dice.pick([5_000, 60_000, 1_200_000]) * (isHeavy ? 3 : 1);
  const actions = isHeavy ? dice.int(150, 250) : dice.int(15, 45);
  return {
    servers: forkWidth > 0 ? 2 : isHeavy ? 5 : Number(dice.weighted({ 2: 3, 3: 6, 4: 2 })),
    users: dice.int(1, 2),
    roomVersion: dice.weighted({ '10': 5, '11': 4, '12': 5, '6': 3, '1': 1, '2': 1 }),
    isPublic: dice.chance(0.8),
    conditions,
    actions,
    duration,
    bursts: Array.from({ length: dice.int(1, 4) }, () => dice.int(0, duration)),
    partitions: dice.pick([0, 1, 1, 2, 4]),
    crashes: dice.pick([0, 0, 1, 2, 4]),
    skew: dice.pick([0, 0, 1_000, 30_000]),
    maxDiskDelay: dice.pick([1, 10, 200]),
    actionWeights: dice.chance(0.5) ? peacefulWeights : hostileWeights,
    forkWidth,
    joinsWithAllMembers: dice.chance(0.4),
    isEncrypted: dice.chance(0.6),
    eduActions: dice.int(5, 30),
    rejectedState: dice.chance(0.5) ? 0.5 : 0,
  };
}
