import { accounts } from './expected/accounts.ts';
import { administration } from './expected/admin-api.ts';
import { errors } from './expected/errors.ts';
import type { ExpectedDifference } from './expected/expected-difference.ts';
import { mediaAndServer } from './expected/media-and-server.ts';
import { pushRules } from './expected/push-rules.ts';
import { rooms } from './expected/rooms.ts';
import { syncs } from './expected/syncs.ts';

/** All expected differences. */
export const expectedDifferences: readonly ExpectedDifference[] = [
  ...errors,
  ...accounts,
  ...pushRules,
  ...rooms,
  ...syncs,
  ...mediaAndServer,
  ...administration,
];
