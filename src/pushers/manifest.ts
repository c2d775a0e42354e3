import { writerFor } from '../kernel/database/index.ts';
import type { SliceManifest } from '../kernel/slices/index.ts';
import { pusherChecks } from './checks.ts';
import { pusherMigrations } from './migrations.ts';
import { deletePushers } from './store.ts';
import type { PusherTables } from './tables.ts';

export const pushersManifest = {
  name: 'pushers',
  checks: pusherChecks,
  migrations: pusherMigrations,
  accountRows: {
    tables: [
      { table: 'pushers', column: 'user_id', deletedOn: 'deactivation' },
      { table: 'pending_pushes', column: 'user_id', deletedOn: 'deactivation' },
      { table: 'mail_throttles', column: 'user_id', deletedOn: 'deactivation' },
    ],
  },
  deviceRows: {
    deleteForDevices: async (writer, userId, deviceIds) => {
      const pusherWriter = writerFor<PusherTables>(writer);
      const pushers = await pusherWriter
        .selectFrom('pushers')
        .select('id')
        .where('user_id', '=', userId)
        .where('device_id', 'in', deviceIds)
        .execute();
      await deletePushers(
        pusherWriter,
        pushers.map(({ id }) => id),
      );
    },
  },
  roomRows: {
    tables: [
      { table: 'pending_pushes', column: 'room_id', holds: 'room id', key: ['pusher_id', 'stream'] },
      { table: 'mail_throttles', column: 'room_id', holds: 'room id', key: ['pusher_id', 'room_id'] },
    ],
  },
} satisfies SliceManifest;
