import type { Migration } from '../../kernel/database/index.ts';

export const keyMigrations: readonly Migration[] = [
  {
    name: 'federation-client/0002-server-keys',
    async up({ db, clustered }) {
      await clustered(
        db.schema
          .createTable('server_keys')
          .addColumn('server_name', 'text', (column) => column.notNull())
          .addColumn('key_id', 'text', (column) => column.notNull())
          .addColumn('public_key', 'text', (column) => column.notNull())
          .addColumn('valid_until_ts', 'bigint', (column) => column.notNull())
          .addColumn('expired_ts', 'bigint')
          .addColumn('fetched_ts', 'bigint', (column) => column.notNull())
          .addColumn('response', 'text', (column) => column.notNull())
          .addPrimaryKeyConstraint('server_keys_key', ['server_name', 'key_id']),
      ).execute();
    },
  },
  {
    name: 'federation-client/0003-key-responses',
    async up({ db, clustered, run }) {
      await clustered(
        db.schema
          .createTable('server_key_responses')
          .addColumn('server_name', 'text', (column) => column.notNull())
          .addColumn('response_id', 'text', (column) => column.notNull())
          .addColumn('text', 'text', (column) => column.notNull())
          .addColumn('fetched_ts', 'bigint', (column) => column.notNull())
          .addPrimaryKeyConstraint('server_key_responses_key', ['server_name', 'response_id']),
      ).execute();
      // 32768 is `maxResponseBytes`, and 4 is `maxResponses`.
      await run(`insert into server_key_responses (server_name, response_id, text, fetched_ts)
        select server_name, response_id, response, fetched_ts from (
          select server_name, min(key_id) as response_id, response, max(fetched_ts) as fetched_ts,
            row_number() over (partition by server_name order by max(fetched_ts) desc, min(key_id)) as place
          from server_keys where length(response) <= 32768 group by server_name, response
        ) as responses where place <= 4`);
      await run("alter table server_keys add column response_id text not null default ''");
      await run(`update server_keys set response_id = responses.response_id from server_key_responses as responses
        where responses.server_name = server_keys.server_name and responses.text = server_keys.response`);
      await run('alter table server_keys drop column response');
    },
  },
  {
    name: 'federation-client/0004-keys-for-events',
    async up({ run }) {
      await run('alter table server_keys add column for_events integer not null default 0');
      // Which of the stored keys were needed for events is unknown.
      await run('update server_keys set for_events = 1');
    },
  },
];
