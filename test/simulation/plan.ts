import type { Weather } from './network.ts';
import type { Dice } from './random.ts';

/** What a seed is about. */
export interface Plan {
  readonly servers: number;
  /** Users of each server. */
  readonly users: number;
  readonly roomVersion: string;
  readonly isPublic: boolean;
  readonly weather: Weather;
  /** Things that users do. */
  readonly actions: number;
  /** Milliseconds in which they do them. */
  readonly duration: number;
  /** Milliseconds at which much happens at once; the network often fails then. */
  readonly bursts: readonly number[];
  readonly partitions: number;
  readonly crashes: number;
  /** Milliseconds by which clocks differ at most. */
  readonly skew: number;
  readonly slowestDisk: number;
  /** How often each kind of action is taken. */
  readonly habits: Readonly<Record<ActionName, number>>;
  /** Events that all follow the same one, made by one server. */
  readonly fan: number;
  /** Whether servers that join are told of all members at once. */
  readonly joinsWhole: boolean;
  readonly isEncrypted: boolean;
  /** Things that users do besides: see `asides.ts`. */
  readonly asides: number;
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
  | 'turnDown'
  | 'redact';

/** Every so many seeds, a fork with thousands of ends. */
const fanEvery = 250;

const calm = {
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
  turnDown: 5,
};

/** What people do to each other where they do not get on. */
const war = { ...calm, message: 15, power: 22, ban: 16, unban: 14, kick: 10, join: 30, joinRules: 8 };

export function planOf(seed: number, dice: Dice): Plan {
  const isHeavy = dice.chance(0.02);
  const fan = seed % fanEvery === fanEvery - 1 ? dice.int(1_000, 2_000) : 0;
  const weather = dice.pick([
    { lostRequests: 0, lostAnswers: 0, duplicates: 0, slowest: 50 },
    { lostRequests: 0.02, lostAnswers: 0.02, duplicates: 0.05, slowest: 500 },
    { lostRequests: 0.1, lostAnswers: 0.1, duplicates: 0.2, slowest: 5_000 },
  ]);
  const duration = dice.pick([5_000, 60_000, 1_200_000]) * (isHeavy ? 3 : 1);
  const actions = isHeavy ? dice.int(150, 250) : dice.int(15, 45);
  return {
    servers: fan > 0 ? 2 : isHeavy ? 5 : Number(dice.weighted({ 2: 3, 3: 6, 4: 2 })),
    users: dice.int(1, 2),
    roomVersion: dice.weighted({ '10': 5, '11': 4, '12': 5, '6': 3, '1': 1, '2': 1 }),
    isPublic: dice.chance(0.8),
    weather,
    actions,
    duration,
    bursts: Array.from({ length: dice.int(1, 4) }, () => dice.int(0, duration)),
    partitions: dice.pick([0, 1, 1, 2, 4]),
    crashes: dice.pick([0, 0, 1, 2, 4]),
    skew: dice.pick([0, 0, 1_000, 30_000]),
    slowestDisk: dice.pick([1, 10, 200]),
    habits: dice.chance(0.5) ? calm : war,
    fan,
    joinsWhole: dice.chance(0.4),
    isEncrypted: dice.chance(0.6),
    asides: dice.int(5, 30),
  };
}
