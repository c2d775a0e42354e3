import type { Ignoring } from '../../../room-engine/index.ts';
import type { SyncSources } from '../../sources.ts';
import type { ExtensionRequests } from '../request.ts';
import type { ExtensionSources } from '../sources.ts';
import { accountDataExtension } from './account-data.ts';
import { type DeviceContext, e2eeExtension, toDeviceExtension } from './devices.ts';
import type { ExtensionAnswer, ExtensionContext } from './extension.ts';
import { receiptsExtension } from './receipts.ts';
import { threadSubscriptions, threadSubscriptionsExtension } from './thread-subscriptions.ts';
import { typingExtension } from './typing.ts';

/** What clients ask for besides rooms. Source: MSC4186, "Extensions". */
export class Extensions {
  readonly #sources: SyncSources;
  readonly #own: ExtensionSources;
  readonly #ignoring: Ignoring;

  constructor(sources: SyncSources, own: ExtensionSources, ignoring: Ignoring) {
    this.#sources = sources;
    this.#own = own;
    this.#ignoring = ignoring;
  }

  /** The answers of those that are enabled and served; `devices` is what `ofDevice` says. */
  async answers(
    context: ExtensionContext,
    requests: ExtensionRequests,
    devices: readonly ExtensionAnswer[],
  ): Promise<ExtensionAnswer[]> {
    const { receipts, typing } = this.#sources;
    const ignoring = this.#ignoring;
    const { account_data, receipts: ofReceipts, typing: ofTyping } = requests;
    const threads = requests[threadSubscriptions];
    const followed = this.#own.threadSubscriptions;
    const answers = await Promise.all([
      account_data?.enabled ? accountDataExtension(this.#sources, context, account_data) : undefined,
      ofReceipts?.enabled ? receiptsExtension(receipts, context, ofReceipts) : undefined,
      ofTyping?.enabled ? typingExtension({ typing, ignoring }, context, ofTyping) : undefined,
      threads?.enabled && followed ? threadSubscriptionsExtension(followed, context, threads) : undefined,
    ]);
    return [...devices, ...answers.filter((answer) => answer !== undefined)];
  }

  /**
   * What is for one device, and is in every answer: messages for it, which are not known from the client's position
   * but from one of their own, and how many of its keys are left.
   */
  async ofDevice(context: DeviceContext, { to_device, e2ee }: ExtensionRequests): Promise<ExtensionAnswer[]> {
    if (context.deviceId === '') return [];
    const { toDevice, deviceLists, keyCounts } = this.#own;
    const answers = await Promise.all([
      to_device?.enabled && toDevice ? toDeviceExtension(toDevice, context, to_device) : undefined,
      e2ee?.enabled && (deviceLists || keyCounts) ? e2eeExtension(this.#own, context) : undefined,
    ]);
    return answers.filter((answer) => answer !== undefined);
  }
}
