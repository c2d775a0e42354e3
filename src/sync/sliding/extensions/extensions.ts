import type { SyncSources } from '../../sources.ts';
import type { ExtensionRequests } from '../request.ts';
import type { ExtensionSources } from '../sources.ts';
import { accountDataExtension } from './account-data.ts';
import { e2eeExtension, toDeviceExtension } from './devices.ts';
import type { ExtensionAnswer, ExtensionContext } from './extension.ts';
import { receiptsExtension } from './receipts.ts';
import { threadSubscriptions, threadSubscriptionsExtension } from './thread-subscriptions.ts';
import { typingExtension } from './typing.ts';

/** What clients ask for besides rooms. Source: MSC4186, "Extensions". */
export class Extensions {
  readonly #sources: SyncSources;
  readonly #own: ExtensionSources;

  constructor(sources: SyncSources, own: ExtensionSources) {
    this.#sources = sources;
    this.#own = own;
  }

  /** The answers of those that are enabled and served. */
  async answers(context: ExtensionContext, requests: ExtensionRequests): Promise<ExtensionAnswer[]> {
    const { receipts, typing } = this.#sources;
    const { account_data, receipts: ofReceipts, typing: ofTyping, e2ee } = requests;
    const threads = requests[threadSubscriptions];
    const { deviceLists, keyCounts, threadSubscriptions: followed } = this.#own;
    const answers = await Promise.all([
      this.toDevice(context, requests),
      e2ee?.enabled && (deviceLists || keyCounts) ? e2eeExtension(this.#own, context) : undefined,
      account_data?.enabled ? accountDataExtension(this.#sources, context, account_data) : undefined,
      ofReceipts?.enabled ? receiptsExtension(receipts, context, ofReceipts) : undefined,
      ofTyping?.enabled ? typingExtension(typing, context, ofTyping) : undefined,
      threads?.enabled && followed ? threadSubscriptionsExtension(followed, context, threads) : undefined,
    ]);
    return answers.filter((answer) => answer !== undefined);
  }

  /** Messages for the device, which are not known from the client's position but from one of their own. */
  async toDevice(
    context: Pick<ExtensionContext, 'userId' | 'deviceId' | 'upTo'>,
    { to_device }: ExtensionRequests,
  ): Promise<ExtensionAnswer | undefined> {
    const { toDevice } = this.#own;
    return to_device?.enabled && toDevice && context.deviceId !== ''
      ? toDeviceExtension(toDevice, context, to_device)
      : undefined;
  }
}
