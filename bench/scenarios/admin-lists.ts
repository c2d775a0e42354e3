import { hearthGoal } from '../goals.ts';
import { type Account, expectOk, registerAccounts } from '../load/account.ts';
import type { Load, Scenario } from '../scenario.ts';

interface Setup {
  readonly administrator: Account;
}

/** Number of users and of rooms. */
const rows = 100_000;

/** Number of rows before a page in the middle of a list. */
const middle = rows / 2;

const mebibyte = 2 ** 20;

const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows})`;

/**
 * Statements that add users with names, times of activity and an upload, and rooms. The factors make each order differ
 * from the order of insertion.
 */
const fill = [
  `INSERT INTO users (user_id, folded_id, created_at)
   ${numbers} SELECT '@user' || i || ':hearth.test', '@user' || i || ':hearth.test', (i * 79) % 100003 FROM n`,
  `INSERT INTO profile_fields (user_id, field, value)
   ${numbers} SELECT '@user' || i || ':hearth.test', 'displayname', '"Name ' || ((i * 79) % 100003) || '"' FROM n`,
  `INSERT INTO listed_profiles (user_id, displayname, avatar_url, search_text)
   ${numbers} SELECT '@user' || i || ':hearth.test', '"Name ' || ((i * 79) % 100003) || '"', '',
     'user' || i || '\nname ' || ((i * 79) % 100003) FROM n`,
  `INSERT INTO user_activity (user_id, last_seen_at)
   ${numbers} SELECT '@user' || i || ':hearth.test', (i * 83) % 100003 FROM n`,
  `INSERT INTO local_media (media_id, user_id, created_at, uploaded_at, file_id, content_type, size, sha256, authenticated)
   ${numbers} SELECT 'media' || i, '@user' || i || ':hearth.test', i, i, 'file' || i, 'image/png', (i * 79) % 100003, '', 1 FROM n`,
  `INSERT INTO media_usage (user_id, files, bytes, first_at, last_at)
   ${numbers} SELECT '@user' || i || ':hearth.test', 1, (i * 79) % 100003, i, i FROM n`,
  `INSERT INTO room_stats (room_nid, room_id, name, canonical_alias, encryption, join_rule, history_visibility,
     guest_can_join, version, creator, federatable, joined_members, joined_local_members, invited_members, state_events,
     search_text)
   ${numbers} SELECT 1000000 + i, '!room' || i || ':hearth.test', 'Room ' || ((i * 79) % 100003),
     CASE WHEN i % 3 = 0 THEN '#alias' || ((i * 79) % 100003) || ':hearth.test' END,
     CASE WHEN i % 2 = 0 THEN 'm.megolm.v1.aes-sha2' END, CASE i % 3 WHEN 0 THEN 'public' ELSE 'invite' END,
     CASE i % 5 WHEN 0 THEN 'joined' ELSE 'shared' END, (i % 7) / 6, CAST(1 + (i * 7) % 12 AS TEXT),
     '@user' || ((i * 7) % 30011) || ':hearth.test', CASE i % 50 WHEN 0 THEN 0 ELSE 1 END, (i * 83) % 1009,
     (i * 79) % 211, 0, 5 + (i * 83) % 1013, '' FROM n`,
  `INSERT INTO listed_rooms (room_id, name, canonical_alias, version, creator, encryption, join_rule, history_visibility,
     federatable, guest_can_join, search_text)
   SELECT room_id, name, coalesce(canonical_alias, ''), version, creator, coalesce(encryption, ''), join_rule,
     history_visibility, federatable, guest_can_join, lower(name) || '\n' || replace(replace(coalesce(canonical_alias, ''), '#', ''), ':hearth.test', '')
     FROM room_stats WHERE room_nid > 1000000`,
  `INSERT INTO published_rooms (room_id, network)
   ${numbers} SELECT '!room' || i || ':hearth.test', '' FROM n WHERE i % 100 = 0`,
  `INSERT INTO room_servers (server_name, room_id)
   ${numbers} SELECT 'remote.test', '!room' || i || ':hearth.test' FROM n`,
  `INSERT INTO destinations (server_name) VALUES ('remote.test')`,
];

/** Paths of lists, by what the list contains and its order. */
const lists: Readonly<Record<string, string>> = {
  users: 'v2/users?limit=100',
  'users by creation': 'v2/users?limit=100&order_by=creation_ts',
  'users by display name': 'v2/users?limit=100&order_by=displayname',
  'users by last activity': 'v2/users?limit=100&order_by=last_seen_ts',
  'users by user type': 'v2/users?limit=100&order_by=user_type',
  'users by administrator rights, backwards': 'v2/users?limit=100&order_by=admin&dir=b',
  'users whose names contain a text': 'v2/users?limit=100&name=99',
  rooms: 'v1/rooms?limit=100',
  'rooms by size': 'v1/rooms?limit=100&order_by=joined_members',
  'rooms by canonical alias': 'v1/rooms?limit=100&order_by=canonical_alias',
  'rooms by local members': 'v1/rooms?limit=100&order_by=joined_local_members',
  'rooms by version': 'v1/rooms?limit=100&order_by=version',
  'rooms by creator': 'v1/rooms?limit=100&order_by=creator',
  'rooms by encryption': 'v1/rooms?limit=100&order_by=encryption',
  'rooms by federation': 'v1/rooms?limit=100&order_by=federatable',
  'rooms by publication': 'v1/rooms?limit=100&order_by=public',
  'rooms by join rules': 'v1/rooms?limit=100&order_by=join_rules',
  'rooms by guest access': 'v1/rooms?limit=100&order_by=guest_access',
  'rooms by history visibility': 'v1/rooms?limit=100&order_by=history_visibility',
  'rooms by state events': 'v1/rooms?limit=100&order_by=state_events',
  'rooms whose names contain a text': 'v1/rooms?limit=100&search_term=99',
  'rooms of a remote server': 'v1/federation/destinations/remote.test/rooms?limit=100',
  'media of users': 'v1/statistics/users/media?limit=100',
  'media of users by display name': 'v1/statistics/users/media?limit=100&order_by=displayname',
  'media of users by size, backwards': 'v1/statistics/users/media?limit=100&order_by=media_length&dir=b',
  'media of users by number': 'v1/statistics/users/media?limit=100&order_by=media_count',
  'media of users whose names contain a text': 'v1/statistics/users/media?limit=100&search_term=99',
  'media of users of a period with 10,000 uploads':
    'v1/statistics/users/media?limit=100&order_by=media_length&from_ts=50000&until_ts=60000',
  'media of users of a period with half of the uploads':
    'v1/statistics/users/media?limit=100&order_by=media_length&from_ts=25000&until_ts=75000',
  'media of users of a period with almost all uploads':
    'v1/statistics/users/media?limit=100&order_by=media_length&from_ts=2',
  'media of users of a period with all uploads':
    'v1/statistics/users/media?limit=100&order_by=media_length&from_ts=1',
};

/** Matches the names of lists without a measurement of single pages in the middle: searches and lists of a period. */
const readOnlyFromStart = /text|period/;

/** Parameter `from` of every page that is read. When it is `undefined`, the pages after the first page are read in order. */
const starts: Readonly<Record<string, number | undefined>> = {
  'first pages of': 0,
  'next pages of': undefined,
  'single pages at 50,000 of': middle,
};

/** Pages of the admin API's lists, with 100,000 users and 100,000 rooms. */
export const adminLists: Scenario<Setup> = {
  name: 'admin-lists',
  targets: ['hearth'],
  async prepare(target) {
    const [administrator] = await registerAccounts(target, 1);
    if (!target.process) throw new Error('the database of a server that the bench did not start is unknown');
    await target.process.runSql([
      ...fill,
      `UPDATE users SET is_admin = 1 WHERE user_id = '${administrator!.userId}'`,
    ]);
    return { administrator: administrator! };
  },
  loads: Object.entries(lists).flatMap(([list, path]) =>
    Object.entries(starts)
      .filter(([, from]) => from !== middle || !readOnlyFromStart.test(list))
      .map(
        ([pages, from]): Load<Setup> => ({
          name: `admin-list-${from ?? 'next'}-${list.replaceAll(' ', '-')}`,
          title: `${pages} ${list}`,
          operation: 'pages',
          goals: [
            hearthGoal(
              'ms of processor time per page',
              { atMost: 50 },
              ({ cpuPerThousand }) => cpuPerThousand,
            ),
            hearthGoal('MiB resident', {}, ({ residentBytes }) => residentBytes && residentBytes / mebibyte),
          ],
          run: ({ administrator }, seconds) => readPages(administrator, path, from, seconds),
        }),
      ),
  ),
  dispose({ administrator }) {
    administrator.connection.close();
  },
};

/** The part of a response that names the next page. */
interface Page {
  readonly next_token?: string;
  readonly next_batch?: number;
}

/**
 * Reads pages of a list for some seconds.
 * @param from where each page begins; `undefined` to read one page after the other, from the second one on
 */
async function readPages({ connection }: Account, path: string, from: number | undefined, seconds: number) {
  let latencies: number[] = [];
  const read = async (start: string | number) => {
    const began = performance.now();
    const url = `/_synapse/admin/${path}&from=${start}`;
    const page = JSON.parse(expectOk(await connection.request('GET', url), url).toString()) as Page;
    latencies.push(performance.now() - began);
    return page.next_token ?? page.next_batch ?? 0;
  };
  let next = await read(from ?? 0);
  const startedAt = performance.now();
  latencies = [];
  while (performance.now() - startedAt < seconds * 1000) next = await read(from ?? next);
  return { operations: latencies.length, seconds: (performance.now() - startedAt) / 1000, latencies };
}
