import type { SliceManifest } from '../kernel/slices/index.ts';
import { threadSubscriptionMigrations } from './migrations.ts';

export const threadSubscriptionsManifest: SliceManifest = {
  name: 'thread-subscriptions',
  migrations: threadSubscriptionMigrations,
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
};
