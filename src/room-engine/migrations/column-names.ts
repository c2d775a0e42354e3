import type { Migration } from '../../kernel/database/index.ts';

/** Renames columns of `rooms` and `backward_extremities` to the terms that the code uses. */
export const columnNamesMigration: Migration = {
  name: 'rooms/0018-column-names',
  async up({ run }) {
    await run('alter table rooms rename column loose_ends to former_extremities');
    await run('alter table backward_extremities rename column answers_left to backfills_left');
    await run('alter table backward_extremities rename column named_by to referenced_by');
  },
};
