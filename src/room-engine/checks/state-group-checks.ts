import { type DatabaseCheck, numberChecks, rowsCheck } from '../../kernel/database/index.ts';
import { stateGroupIds } from '../migrations/state-groups.ts';

/** Checks of the tables of state groups, which may have a database of their own. */
const checks = [
  rowsCheck({
    problem: 'state groups without the group that they build on: their states are incomplete',
    select: `select id as subject from state_group_edges e
      where not exists (select 1 from state_groups g where g.id = e.prev_id)`,
  }),
  rowsCheck({
    problem: 'entries of state groups that do not exist',
    select: `select group_id as subject from state_groups_state s
      where not exists (select 1 from state_groups g where g.id = s.group_id)`,
  }),
  ...numberChecks([{ bound: stateGroupIds, table: 'state_groups', column: 'id' }]),
];

/** The checks above, which read and repair the database of state groups instead of the main database. */
export const stateGroupChecks: readonly DatabaseCheck[] = checks.map((check) => ({
  ...check,
  store: 'state' as const,
  find: ({ state }) => check.find({ main: state, state }),
}));
