import { request } from 'undici';
import { testImage } from '../../test/support/inputs/images.ts';
import { hearthGoal } from '../goals.ts';
import { type Account, registerAccounts } from '../load/account.ts';
import { closedLoop } from '../load/closed-loop.ts';
import type { Goal, Load, Scenario } from '../scenario.ts';
import type { Target } from '../target.ts';

interface Setup {
  readonly target: Target;
  readonly accounts: readonly Account[];
  /** `server/mediaId` of a file of one mebibyte. */
  readonly file: string;
  /** `server/mediaId` of an image. */
  readonly image: string;
}

/** Number of accounts that send requests at the same time. */
const concurrency = 8;
const mebibyte = Buffer.alloc(2 ** 20, 'x');

/** A goal for the CPU milliseconds of a request. They are the same number as the seconds of a thousand requests. */
const cpu = (atMost: number): Goal =>
  hearthGoal('ms of CPU each', { atMost }, ({ cpuPerThousand }) => cpuPerThousand);

/** Sends a request and reads the response. */
async function call(
  { url }: Target,
  { token }: Account,
  path: string,
  body?: Buffer,
  type = 'application/octet-stream',
): Promise<Buffer> {
  const { statusCode, body: answer } = await request(url + path, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': type }) },
    body: body ?? null,
  });
  const bytes = Buffer.from(await answer.arrayBuffer());
  if (statusCode !== 200) throw new Error(`${path}: ${statusCode} ${bytes}`);
  return bytes;
}

/** Uploads a file. @returns `server/mediaId` */
async function upload(target: Target, account: Account, body: Buffer, type?: string): Promise<string> {
  const answer = await call(target, account, '/_matrix/media/v3/upload', body, type);
  return (JSON.parse(answer.toString()) as { content_uri: string }).content_uri.slice('mxc://'.length);
}

/** Describes a load in which each of `concurrency` accounts repeats `work`, one request after another. */
const load = (
  description: Pick<Load<Setup>, 'name' | 'title' | 'operation' | 'goals'>,
  work: (setup: Setup, account: Account) => Promise<unknown>,
): Load<Setup> => ({
  ...description,
  run: (setup, seconds) =>
    closedLoop(concurrency, seconds, async (index) => {
      await work(setup, setup.accounts[index]!);
    }),
});

/**
 * Uploads and downloads of one mebibyte, and downloads of stored thumbnails. The ceiling only streams files to and from
 * the disk.
 */
export const media: Scenario<Setup> = {
  name: 'media',
  targets: ['hearth', 'ceiling', 'peer'],
  async prepare(target) {
    const accounts = await registerAccounts(target, concurrency);
    const [account] = accounts as [Account];
    const file = await upload(target, account, mebibyte);
    const isBare = target.kind === 'ceiling';
    const image = isBare ? file : await upload(target, account, await testImage(1_200, 900), 'image/png');
    return { target, accounts, file, image };
  },
  loads: [
    load(
      { name: 'media-upload', title: 'uploads of 1 MiB', operation: 'uploads', goals: [cpu(3.5)] },
      ({ target }, account) => upload(target, account, mebibyte),
    ),
    load(
      { name: 'media-download', title: 'downloads of 1 MiB', operation: 'downloads', goals: [cpu(1.5)] },
      ({ target, file }, account) => call(target, account, `/_matrix/client/v1/media/download/${file}`),
    ),
    load(
      { name: 'media-thumbnail', title: 'stored thumbnails', operation: 'thumbnails', goals: [cpu(0.6)] },
      ({ target, image }, account) => {
        const kind = target.kind === 'ceiling' ? 'download' : 'thumbnail';
        return call(
          target,
          account,
          `/_matrix/client/v1/media/${kind}/${image}?width=96&height=96&method=crop`,
        );
      },
    ),
  ],
  dispose({ accounts }) {
    for (const { connection } of accounts) connection.close();
  },
};
