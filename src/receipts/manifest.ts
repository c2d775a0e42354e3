import type { SliceManifest } from '../kernel/slices/index.ts';
import { receiptMigrations } from './migrations.ts';

export const receiptsManifest = {
  name: 'receipts',
  assignedNumbers: [{ bound: 'positions', table: 'receipts', column: 'position' }],
  migrations: receiptMigrations,
  roomRows: {
    tables: [
      {
        table: 'receipts',
        column: 'room_id',
        holds: 'room id',
        key: ['room_id', 'user_id', 'type', 'thread_id'],
      },
    ],
  },
} satisfies SliceManifest;
