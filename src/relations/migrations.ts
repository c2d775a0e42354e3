import type { Migration } from '../kernel/database/index.ts';

export const relationMigrations: readonly Migration[] = [
  {
    name: 'relations/0001-relations',
    async up({ db, clustered }) {
      await db.schema
        .createTable('event_relations')
        .addColumn('child_nid', 'bigint', (column) => column.primaryKey())
        .addColumn('room_nid', 'bigint', (column) => column.notNull())
        .addColumn('parent_id', 'text', (column) => column.notNull())
        .addColumn('rel_type', 'text', (column) => column.notNull())
        .addColumn('type', 'text', (column) => column.notNull())
        .addColumn('sender', 'text', (column) => column.notNull())
        .addColumn('key', 'text')
        .addColumn('ts', 'bigint', (column) => column.notNull())
        .addColumn('depth', 'bigint', (column) => column.notNull())
        .addColumn('stream', 'bigint', (column) => column.notNull())
        .execute();
      await db.schema
        .createIndex('event_relations_by_parent')
        .on('event_relations')
        .columns(['parent_id', 'depth', 'stream'])
        .execute();
      await db.schema
        .createTable('threads')
        .addColumn('room_nid', 'bigint', (column) => column.notNull())
        .addColumn('root_id', 'text', (column) => column.notNull())
        .addColumn('latest_stream', 'bigint')
        .addPrimaryKeyConstraint('threads_key', ['root_id', 'room_nid'])
        .$call(clustered)
        .execute();
      await db.schema
        .createIndex('threads_by_latest')
        .on('threads')
        .columns(['room_nid', 'latest_stream'])
        .execute();
    },
  },
  {
    // A remote server may annotate an event many times; a new annotation is compared with the other annotations of
    // its sender only.
    name: 'relations/0002-annotations-by-sender',
    async up({ db }) {
      await db.schema
        .createIndex('event_relations_annotations')
        .on('event_relations')
        .columns(['parent_id', 'sender'])
        .where('rel_type' as never, '=', 'm.annotation' as never)
        .execute();
    },
  },
  {
    // The index has all columns that a count of the replies in a thread needs.
    name: 'relations/0003-replies-by-sender',
    async up({ db }) {
      await db.schema
        .createIndex('event_relations_replies')
        .on('event_relations')
        .columns(['parent_id', 'room_nid', 'sender'])
        .where('rel_type' as never, '=', 'm.thread' as never)
        .execute();
    },
  },
];
