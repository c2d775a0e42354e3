import type { MediaRepositoryRules } from '../../media/index.ts';
import { isJsonObject, MatrixError, unknown } from '../../protocol/index.ts';
import { throwDenial, unlessNone } from '../accounts/account-checks.ts';
import type { MediaRules, UploadLimit } from '../api/index.ts';
import { firstAnswer, firstDenial, notify } from '../calls/call-all.ts';
import { CallbackFailure, type ModuleCalls } from '../calls/module-calls.ts';
import type { ModuleCallbacks, RegisteredCallbacks } from '../registered-callbacks.ts';

/** Milliseconds in which a check of a file has to answer. */
const fileTimeout = 60_000;

/** Returns the rules of modules for the media repository; a member is absent where no module has such a rule. */
export function moduleMediaRules(callbacks: RegisteredCallbacks, calls: ModuleCalls): MediaRepositoryRules {
  const files = callbacks.with('spamChecker', 'checkMediaFile');
  const sizes = callbacks.with('mediaRules', 'mayUpload');
  const limits = callbacks.with('mediaRules', 'uploadLimits');
  const exceeded = callbacks.with('mediaRules', 'onUploadLimit');
  const configs = callbacks.with('mediaRules', 'mediaConfig');
  return {
    checkFile: unlessNone(
      files,
      async ({ userId, remoteServer, contentType, fileName, size, sha256, read }) => {
        const file = { userId, remoteServer, contentType, fileName, size, sha256, read };
        throwDenial(await firstDenial(calls, 'checkMediaFile', files, (check) => check(file), fileTimeout));
      },
    ),
    checkSize: unlessNone(sizes, (userId, size) => checkSize(calls, sizes, userId, size)),
    uploadLimits: unlessNone(limits, async (userId) => {
      const call = (find: NonNullable<MediaRules['uploadLimits']>) => find(userId);
      const answer = await firstAnswer(calls, 'uploadLimits', limits, call, areUploadLimits);
      return answer?.map(({ maxSize, period }) => ({ max_size: maxSize, time_period: period }));
    }),
    limitExceeded: unlessNone(exceeded, ({ userId, limit, used, size }) => {
      const given = { maxSize: limit.max_size, period: limit.time_period };
      notify(calls, 'onUploadLimit', exceeded, (receive) => receive(userId, given, used, size));
    }),
    config: unlessNone(configs, (userId) =>
      firstAnswer(calls, 'mediaConfig', configs, (find) => find(userId), isJsonObject),
    ),
  };
}

/** @throws MatrixError M_TOO_LARGE when a module denies the size; M_UNKNOWN with status 500 when one fails */
async function checkSize(
  calls: ModuleCalls,
  found: readonly ModuleCallbacks<NonNullable<MediaRules['mayUpload']>>[],
  userId: string,
  size: number,
): Promise<void> {
  for (const { module, callbacks: mayUpload } of found) {
    let answer: unknown;
    try {
      answer = await calls.run(module, 'mayUpload', () => mayUpload(userId, size));
      if (typeof answer !== 'boolean')
        throw calls.failed(module, 'mayUpload', 'answer', new TypeError('The answer is not a boolean'));
    } catch (error) {
      if (!(error instanceof CallbackFailure)) throw error;
      throw unknown('A check of this server failed. Try again later');
    }
    if (!answer) throw new MatrixError(413, 'M_TOO_LARGE', 'You cannot upload files of this size');
  }
}

const areUploadLimits = (answer: readonly UploadLimit[]): boolean =>
  Array.isArray(answer) &&
  answer.every(
    (limit: Partial<UploadLimit> | null) =>
      typeof limit?.maxSize === 'number' && typeof limit.period === 'number' && limit.period > 0,
  );
