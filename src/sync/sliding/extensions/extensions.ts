import type { DeviceSection } from '../../../sync-contract/index.ts';
import type { SourceList, SourceSection } from '../../sources/source-list.ts';
import { type ExtensionRequests, enabledIn, type InRooms, type ToDeviceRequest } from '../request.ts';
import { accountDataExtension } from './account-data.ts';
import { type DeviceContext, deviceExtension, toDeviceExtension } from './devices.ts';
import { ephemeralExtension } from './ephemeral.ts';
import type { ExtensionAnswer, ExtensionContext } from './extension.ts';

/** Answers extensions. Source: MSC4186, "Extensions". */
export class Extensions {
  readonly #sources: SourceList;
  /** The sections about devices, by the name of their extension. */
  readonly #device: ReadonlyMap<string, readonly SourceSection<DeviceSection>[]>;

  constructor(sources: SourceList) {
    this.#sources = sources;
    this.#device = Map.groupBy(sources.device, ({ section }) => section.extension);
  }

  /** Returns the answers of all enabled extensions; `deviceAnswers` is the result of `ofDevice`. */
  async answers(
    context: ExtensionContext,
    requests: ExtensionRequests,
    deviceAnswers: readonly ExtensionAnswer[],
  ): Promise<ExtensionAnswer[]> {
    const { accountData, ephemeral, extensions } = this.#sources;
    const answers: Promise<ExtensionAnswer>[] = [];
    const accountDataRequest = accountData.length > 0 && enabledIn<InRooms>(requests, 'account_data');
    if (accountDataRequest) answers.push(accountDataExtension(this.#sources, context, accountDataRequest));
    for (const ephemeralSource of ephemeral) {
      const request = enabledIn<InRooms>(requests, ephemeralSource.section.extension.name);
      if (request) answers.push(ephemeralExtension(ephemeralSource, context, request));
    }
    const { userId, since, upTo } = context;
    for (const { section } of extensions) {
      const { name } = section;
      const request = enabledIn(requests, name);
      const range = { after: since, upTo };
      if (request)
        answers.push(section.answer(userId, range, request).then((answer) => ({ name, ...answer })));
    }
    return [...deviceAnswers, ...(await Promise.all(answers))];
  }

  /**
   * Returns the answers of the extensions about one device: to-device messages, which have a position of their own, and
   * the fields that every classic answer has. Every answer to a request contains them.
   */
  async ofDevice(context: DeviceContext, requests: ExtensionRequests): Promise<ExtensionAnswer[]> {
    if (context.deviceId === '') return [];
    const { deviceQueue } = this.#sources;
    const answers: Promise<ExtensionAnswer>[] = [];
    const toDeviceRequest = deviceQueue && enabledIn<ToDeviceRequest>(requests, 'to_device');
    if (toDeviceRequest) answers.push(toDeviceExtension(deviceQueue, context, toDeviceRequest));
    for (const [name, sections] of this.#device) {
      if (enabledIn(requests, name)) answers.push(deviceExtension(name, sections, context));
    }
    return Promise.all(answers);
  }
}
