import type { SliceManifest } from '../kernel/slices/index.ts';
import { threadSubscriptionMigrations } from './migrations.ts';

export const threadSubscriptionsManifest = {
  name: 'thread-subscriptions',
  assignedNumbers: [{ bound: 'positions', table: 'thread_subscriptions', column: 'position' }],
  migrations: threadSubscriptionMigrations,
  accountRows: { tables: [{ table: 'thread_subscriptions', column: 'user_id', deletedOn: 'erasure' }] },
  roomRows: {
    tables: [
      {
        table: 'thread_subscriptions',
        column: 'room_id',
        holds: 'room id',
        key: ['user_id', 'room_id', 'root_id'],
      },
    ],
  },
} satisfies SliceManifest;
