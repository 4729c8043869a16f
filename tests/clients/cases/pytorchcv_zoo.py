"""pytorchcv: each family of its models, the smallest one."""

from __future__ import annotations

from functools import partial

from pytorchcv.model_provider import get_model

from tests.clients.zoos import trace_all

PACKAGES = ("pytorchcv", "torch")

NAMES = """
alexnet vgg11 bn_vgg11 resnet10 resnet18 preresnet10 resnext14_16x4d
seresnet10 sepreresnet10 seresnext50_32x4d senet16 ibn_resnet50 ibnb_resnet50
airnet50_1x64d_r2 bam_resnet18 cbam_resnet18 resattnet56 sknet50 scnet50
regnetx002 regnety002 diracnet18v2 darknet53 densenet121 condensenet74_c4_g4
sparsenet121 peleenet wrn50_2 drnc26 dpn68 darts squeezenet_v1_0
squeezeresnet_v1_0 sqnxt23_w1 shufflenet_g1_w1 shufflenetv2_w1
shufflenetv2b_w1 menet108_8x1_g3 mobilenet_w1 mobilenetv2_w1
mobilenetv3_small_w1 igcv3_w1 ghostnet mnasnet_b1 fbnet_cb proxylessnas_gpu
xception inceptionv3 inceptionv4 inceptionresnetv2 polynet nasnet_4a1056
pnasnet5large spnasnet efficientnet_b0 mixnet_s hrnet_w18_small_v1 vovnet27s
selecsls42 hardnet39ds dla34 fishnet99 espnetv2_wd2
bisenet_resnet18_celebamaskhq fastscnn_cityscapes cgnet_cityscapes
dabnet_cityscapes lednet_cityscapes icnet_resnetd50b_cityscapes
sinet_cityscapes fcn8sd_resnetd50b_voc pspnet_resnetd50b_voc
deeplabv3_resnetd50b_voc danet_resnetd50b_cityscapes resnet20_cifar10
preresnet20_cifar10 pyramidnet110_a48_cifar10 densenet40_k12_cifar10
xdensenet40_2_k24_bc_cifar10 nin_cifar10 ror3_56_cifar10 rir_cifar10
shakeshakeresnet20_2x16d_cifar10 resdropresnet20_cifar10 wrn20_10_1bit_cifar10
centernet_resnet18_voc lwopenpose2d_mobilenet_cmupan_coco ibppose_coco
alphapose_fastseresnet101b_coco simplepose_resnet18_coco
""".split()


def main() -> None:
    """Trace them."""
    trace_all({name: partial(get_model, name) for name in NAMES})
