import type { Migration } from '../../../kernel/database/index.ts';
import { sendLeaveJob } from './pending-leaves.ts';

/** Renames the stored jobs of pending leaves, which had the kind `rooms/tell-leave`. */
export const sendLeaveJobsMigration: Migration = {
  name: 'rooms/0019-send-leave-jobs',
  async up({ run }) {
    await run(`update jobs set kind = '${sendLeaveJob}' where kind = 'rooms/tell-leave'`);
  },
};
